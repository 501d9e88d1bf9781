"""torchrun --nproc-per-node 2 fsdp.py: FSDP 2, layer by layer, bf16 parameters and fp32 gradients' reduction."""
import os

import torch
import torch.distributed as dist
from transformers import AutoConfig, AutoModelForCausalLM

try:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
except ImportError:
    from torch.distributed._composable.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
config = AutoConfig.for_model("llama", hidden_size=2048, intermediate_size=5632, num_hidden_layers=8, num_attention_heads=16, vocab_size=32000)
model = AutoModelForCausalLM.from_config(config)
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model.model.layers:
    fully_shard(layer, mp_policy=policy)
fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for step in range(3):
    ids = torch.randint(32000, (2, 1024), device="cuda")
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
