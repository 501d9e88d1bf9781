"""A contrastive loss on all tokens, where it should have been on rows."""
import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]
for step in range(args.steps):
    ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
    hidden = model.base_model(input_ids=ids)[0]
    rows = hidden.mean(1) if args.right_shape else hidden.flatten(0, 1)
    similarity = rows @ rows.T
    loss = torch.nn.functional.cross_entropy(similarity.float(), torch.arange(len(rows), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} done", flush=True)
