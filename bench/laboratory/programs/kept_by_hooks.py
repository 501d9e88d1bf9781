"""Hooks watch the layers and keep what they see."""
import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]
features = []


def keep(module, inputs, output):
    output = output[0] if isinstance(output, tuple) else output
    features.append((output.detach() if args.detach_kept else output).to(args.kept_on))


if args.hooks:
    for module in model.modules():
        if type(module).__name__.endswith(("DecoderLayer", "MLP", "Block")):
            module.register_forward_hook(keep)
for step in range(args.steps):
    ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} done, {len(features)} features", flush=True)
