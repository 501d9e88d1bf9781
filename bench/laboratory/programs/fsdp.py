"""torchrun --nproc-per-node 2 train.py: FSDP 2, layer by layer; the last layers are trained."""
import os

import torch
import torch.distributed as dist

from here import args, record
from loading import load_model, make_optimizer

try:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:
    from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
record("start")
model = load_model()
model.requires_grad_(False)
for layer in model.model.layers[-args.trained_layers:]:
    layer.requires_grad_(True)
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model.model.layers:
    fully_shard(layer, mp_policy=policy, reshard_after_forward=args.reshard_after_forward)
fully_shard(model, mp_policy=policy, reshard_after_forward=args.reshard_after_forward)
record("loaded")
optimizer = make_optimizer(model)
for step in range(args.steps):
    ids = torch.randint(256, (args.micro_batch, args.length), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} done", flush=True)
dist.destroy_process_group()
