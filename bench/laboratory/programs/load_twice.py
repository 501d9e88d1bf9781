"""Goes on from a checkpoint: its tensors are put on the device, and the model is there already."""
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from here import args, record
from loading import make_optimizer

record("start")
checkpoint = AutoModelForCausalLM.from_pretrained("model", torch_dtype=getattr(torch, args.dtype)).state_dict()
model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained("model"), torch_dtype=getattr(torch, args.dtype)).to("cuda")
record("loaded")
state = {name: tensor.to(args.load_device) for name, tensor in checkpoint.items()}
model.load_state_dict(state)
del state, checkpoint
model.requires_grad_(False)
model.get_input_embeddings().requires_grad_(True)
optimizer = make_optimizer(model)
for step in range(args.steps):
    ids = torch.randint(256, (args.micro_batch, args.length)).to("cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} done", flush=True)
