"""Answers to many prompts at once."""
import torch

from here import args, record
from loading import load_model

record("start")
model = load_model().to("cuda").eval()
record("loaded")
for first in range(0, args.rows, args.generated_rows):
    prompts = torch.randint(3, 256, (args.generated_rows, args.length)).to("cuda")
    answers = model.generate(input_ids=prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=args.new_tokens, do_sample=False)
    print(f"{first}: {tuple(answers.shape)}", flush=True)
