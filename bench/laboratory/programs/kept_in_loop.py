"""An evaluation of one's own that keeps all logits until its end."""
import torch

from here import args, record
from loading import load_model, make_optimizer

record("start")
model = load_model().to("cuda")
record("loaded")
optimizer = make_optimizer(model)
vocabulary = model.get_input_embeddings().weight.shape[0]


@torch.no_grad()
def evaluate():
    model.eval()
    kept = []
    for i in range(args.eval_rows // args.eval_batch):
        ids = torch.randint(vocabulary, (args.eval_batch, args.length)).to("cuda")
        kept.append(model(input_ids=ids).logits.to(args.kept_on))
        print(f"evaluated {i}", flush=True)
    model.train()
    return len(kept)


for step in range(args.steps):
    ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} done", flush=True)
    evaluate()
