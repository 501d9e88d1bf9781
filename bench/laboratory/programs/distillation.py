"""A student learns from a teacher, which joins after the first steps."""
import copy

import torch
from transformers import AutoModelForCausalLM

from here import args, record
from loading import load_model, make_optimizer

record("start")
student = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(student)
teacher = None
for step in range(args.steps):
    if args.second_model and step == args.warm_up:
        if args.teacher == "copy":
            teacher = copy.deepcopy(student)
        else:
            teacher = AutoModelForCausalLM.from_pretrained("model", torch_dtype=getattr(torch, args.dtype)).to("cuda")
        teacher.requires_grad_(False).eval()
    ids = torch.randint(256, (args.micro_batch, args.length)).to("cuda")
    out = student(input_ids=ids, labels=ids)
    loss = out.loss
    if teacher is not None:
        with torch.no_grad():
            wanted = teacher(input_ids=ids).logits.softmax(-1)
        loss = loss + torch.nn.functional.kl_div(out.logits.log_softmax(-1), wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del out, loss
    print(f"step {step} done", flush=True)
