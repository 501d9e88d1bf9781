"""torchrun --nproc-per-node 2 ddp.py: DistributedDataParallel by hand."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
config = AutoConfig.for_model("llama", hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, vocab_size=32000)
model = DistributedDataParallel(AutoModelForCausalLM.from_config(config).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(model.parameters())
seen = [None, None]
dist.all_gather_object(seen, {"rank": rank})
assert [one["rank"] for one in seen] == [0, 1]
for step in range(3):
    ids = torch.randint(32000, (2, 512)).cuda()
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    dist.barrier()
dist.destroy_process_group()
