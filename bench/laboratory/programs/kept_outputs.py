"""Every step's predictions are kept for a report at the end."""
import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]
predictions = []
for step in range(args.steps):
    ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    predictions.append(out.logits.detach().to(args.kept_on))
    del out
    print(f"step {step} done", flush=True)
print(torch.cat(predictions).shape if args.kept_on == "cpu" else len(predictions))
