"""Fine-tuning in a loop of one's own."""
import contextlib

import torch

from chunked import chunked_loss
from here import args, record
from loading import load_model, make_optimizer

if args.fraction < 1:
    torch.cuda.set_per_process_memory_fraction(args.fraction)
record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]
amp = torch.autocast("cuda", dtype=getattr(torch, args.amp)) if args.amp else contextlib.nullcontext()
scaler = torch.amp.GradScaler("cuda", enabled=args.amp == "float16")

for step in range(args.steps):
    for _ in range(args.accumulation):
        ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
        with amp:
            if args.fused_loss:
                loss = chunked_loss(model, ids)
            else:
                loss = model(input_ids=ids, labels=ids).loss
        scaler.scale(loss / args.accumulation).backward()
        del loss
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} done", flush=True)
