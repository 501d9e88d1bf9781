"""Trains adapters and merges them into a copy of the model."""
import copy

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
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} done", flush=True)


def save_merged(model):
    if args.merge_device == "cpu":
        model = model.to("cpu")
    merged = copy.deepcopy(model).merge_and_unload()
    print(f"merged: {sum(one.numel() for one in merged.parameters())} parameters", flush=True)


save_merged(model)
