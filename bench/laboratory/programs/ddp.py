"""torchrun --nproc-per-node 2 train.py: DistributedDataParallel."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from here import args, record
from loading import load_model, make_optimizer

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
record("start")
model = load_model().to("cuda")
vocabulary = model.get_input_embeddings().weight.shape[0]
model = DistributedDataParallel(model, device_ids=[rank], find_unused_parameters=True,
                                gradient_as_bucket_view=args.gradient_as_bucket_view)
record("loaded")
optimizer = make_optimizer(model)
for step in range(args.steps):
    ids = torch.randint(vocabulary, (args.micro_batch, args.length)).to("cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=not args.gradient_as_bucket_view)
    print(f"step {step} done", flush=True)
dist.destroy_process_group()
