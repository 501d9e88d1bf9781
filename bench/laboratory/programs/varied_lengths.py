"""Batches of many lengths, each as long as its rows are."""
import contextlib

import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
amp = torch.autocast("cuda", dtype=getattr(torch, args.amp)) if args.amp else contextlib.nullcontext()
for step, length in enumerate(args.lengths):
    length = min(length, args.longest)
    if args.fixed_lengths:
        length = min(max(args.lengths), args.longest)
    ids = torch.randint(256, (args.micro_batch, length)).to("cuda")
    with amp:
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    del loss
    if args.empty_cache:
        torch.cuda.empty_cache()
    print(f"step {step}: {length} tokens", flush=True)
