"""Variants of LoRA against PEFT on models of other cases: rsLoRA with rank_pattern and alpha_pattern, DoRA, and dropout.

tests/golden/adapters/CASE/: adapter/ (as PEFT saves it; lora_B and the magnitudes random, so that every gradient is there and m
differs from the norm), base.json (whose model and batch), expected.safetensors: of the first step's batch

  `logits`, `loss` [1], `grad.NAME`          without dropout
  `dropout.loss` [1], `dropout.grad.NAME`    with lora_dropout P, every adapted module drawing snug's mask (below) at STEP

PEFT's own code runs with nn.Dropout's draw replaced: an element is left out where its word of Philox4x32-10 lies below P * 2^32.
Key: seed 42 ^ "dropout\\0"; counter: micro-batch << 40 | element / 4, then ordinal of the adapted module in the forward pass << 48 |
layer << 32 | step; word element % 4.
"""

import os
import re

import numpy
import peft
import torch

import oracle
from make_lora import save_adapter, trained_by_file_name

P, STEP, SEED = 0.3, 3, 42


def philox(seed, stream, index):
    """[n, 4] words for an array of indices."""
    low = numpy.uint64(0xFFFFFFFF)
    c = [index & low, index >> numpy.uint64(32), numpy.full_like(index, stream & 0xFFFFFFFF), numpy.full_like(index, stream >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k0), p1 & low, (p0 >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c, axis=1)


class CountedDropout(torch.nn.Module):
    def __init__(self, ordinal, layer):
        super().__init__()
        self.stream = ordinal << 48 | layer << 32 | STEP

    def forward(self, x):
        blocks = numpy.arange((x.numel() + 3) // 4, dtype=numpy.uint64)
        words = philox(SEED ^ 0x64726F706F757400, self.stream, blocks).reshape(-1)[:x.numel()]
        kept = torch.from_numpy(words >= round(P * 2**32)).reshape(x.shape)
        return x * kept / (1 - P)


def turn_dropout_on(model, order):
    for name, module in model.named_modules():
        if not isinstance(module, peft.tuners.lora.LoraLayer):
            continue
        layer = int(re.search(r"\.(\d+)\.", name).group(1))
        ordinal = next(i for i, end in enumerate(order) if name.endswith(end))
        module.lora_dropout["default"] = CountedDropout(ordinal, layer)
        module.training = True  # of this module alone: DoRA asks


def make(case, base, seed, order, **lora):
    """`order`: ends of the adapted modules' names in the order of the forward pass."""
    directory = oracle.GOLDEN / "adapters" / case
    directory.mkdir(parents=True, exist_ok=True)
    batch, = oracle.first_step(oracle.json.loads((oracle.GOLDEN / base / "batch.json").read_text()))
    torch.manual_seed(seed)
    model = peft.get_peft_model(oracle.read_model(oracle.GOLDEN / base),
                                peft.LoraConfig(lora_dropout=P, task_type="CAUSAL_LM", **lora)).eval()
    trained = trained_by_file_name(model)
    with torch.no_grad():
        for name, parameter in trained.items():
            if ".lora_B." in name:
                parameter.normal_(0.0, 0.1)
            if ".lora_magnitude_vector" in name:
                parameter *= 1 + 0.3 * torch.randn_like(parameter)
    save_adapter(model, directory / "adapter")

    tensors = {}
    for prefix in ("", "dropout."):
        if prefix:
            turn_dropout_on(model, order)
        model.zero_grad()
        (loss,), (logits,) = oracle.accumulate(model, [batch], oracle.count_targets(batch))
        tensors[prefix + "loss"] = loss.reshape(1)
        if not prefix:
            tensors["logits"] = logits
        tensors |= {prefix + name: tensor.clone() for name, tensor in oracle.gradients(trained.items()).items()}
    case = f"adapters/{case}"
    oracle.write_golden(case, batch, tensors, {"base": base, "dropout": P, "step": STEP, "seed": SEED})
    (oracle.GOLDEN / case / "batch.json").unlink()  # the base's


LLAMA = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main():
    os.chdir(oracle.ROOT)
    make("rslora_patterns", "lora", 51, LLAMA, r=2, lora_alpha=8, use_rslora=True, target_modules=LLAMA,
         rank_pattern={"q_proj": 3, "mlp.up_proj": 1}, alpha_pattern={"self_attn.v_proj": 3.5, "down_proj": 20, "mlp.gate_proj": 2})
    make("dora_llama", "lora", 52, LLAMA, r=2, lora_alpha=5, use_dora=True, target_modules=LLAMA)
    make("dora_qwen2", "qwen2", 53, ["q_proj", "v_proj", "o_proj", "up_proj"], r=2, lora_alpha=6, use_dora=True, use_rslora=True,
         target_modules=["q_proj", "v_proj", "o_proj", "up_proj"])
    make("dora_phi3", "lora_phi3", 54, ["qkv_proj", "gate_up_proj", "down_proj"], r=2, lora_alpha=5, use_dora=True,
         target_modules=["qkv_proj", "gate_up_proj", "down_proj"])
    make("dora_gpt2", "lora_gpt2", 55, ["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"], r=2, lora_alpha=5, use_dora=True,
         fan_in_fan_out=True, target_modules=["c_attn", "c_proj", "c_fc"])


if __name__ == "__main__":
    main()
