"""Losses are kept, and with each the graph of its forward."""
import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]


def batch():
    return torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")


def validate(batches):
    losses = []
    for i in range(batches):
        ids = batch()
        loss = model(input_ids=ids, labels=ids).loss
        losses.append(loss.item() if args.detach_kept else loss)
        print(f"batch {i} done", flush=True)
    return sum(losses) / len(losses)


def accumulate(batches):
    total = 0
    for i in range(batches):
        ids = batch()
        loss = model(input_ids=ids, labels=ids).loss / batches
        if args.detach_kept:
            loss.backward()
            loss = loss.detach()
        total = total + loss
        print(f"micro-batch {i} done", flush=True)
    if not args.detach_kept:
        total.backward()
    optimizer.step()
    optimizer.zero_grad()


def train(batches):
    history = []
    for i in range(batches):
        ids = batch()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward(retain_graph=not args.detach_kept)
        optimizer.step()
        optimizer.zero_grad()
        history.append(loss.detach() if args.detach_kept else loss)
        print(f"step {i} done", flush=True)


{"validate": validate, "accumulate": accumulate, "train": train}[args.loop](args.batches)
