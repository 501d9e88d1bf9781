"""Keeps the best weights, and later goes back to them."""
import copy

import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]


def save_checkpoint(model):
    if args.save_device == "cpu":
        return {name: tensor.to("cpu") for name, tensor in model.state_dict().items()}
    if args.how == "deepcopy":
        return copy.deepcopy(model.state_dict())
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


for step in range(args.steps):
    ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
    optimizer.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    print(f"step {step} done", flush=True)
    if step == args.save_at:
        best = save_checkpoint(model)
