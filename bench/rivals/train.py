#!/usr/bin/env python3
"""Fine-tuning as it is done with transformers and peft, as a plain loop: the rival in bench/rivals.sh.

It trains on the rows that snug sees: one text, cut into pieces of `--seq` tokens, in order. Writes one JSON line for each step and a
last one with the process's peak memory. Nothing is measured inside a step: the ceiling is a product of 2048 x 2048 x 2048 in the
arithmetic of the mode, on the same threads, between steps, with memory that is given back before the next one.
"""

import argparse
import json
import statistics
import sys
import time

import peft
import torch
import transformers
from safetensors.torch import load_file

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
CEILING_SIZE = 2048


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", help="JSONL with one row of text")
    parser.add_argument("--mode", choices=("fp32", "bf16", "autocast"), default="fp32",
                        help="fp32; bf16 weights; fp32 weights with bf16 autocast")
    parser.add_argument("--compile", action="store_true", help="torch.compile the model")
    parser.add_argument("--method", choices=("lora", "qlora", "full"), default="lora")
    parser.add_argument("--adapter", help="PEFT adapter whose weights to start from")
    parser.add_argument("--make-adapter", help="write a fresh adapter into this directory, and stop")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=512)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokens-out", help="write the token ids of all steps here, as int32")
    return parser.parse_args()


def lora_config(args: argparse.Namespace) -> peft.LoraConfig:
    return peft.LoraConfig(r=args.rank, lora_alpha=args.alpha, lora_dropout=0.0, target_modules=TARGETS, task_type="CAUSAL_LM")


def load(args: argparse.Namespace) -> torch.nn.Module:
    dtype = torch.bfloat16 if args.mode == "bf16" else torch.float32
    quantization = None
    if args.method == "qlora":
        quantization = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                                       bnb_4bit_compute_dtype=dtype)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype, attn_implementation="sdpa",
                                                              quantization_config=quantization)
    model.config.use_cache = False
    if args.method != "full":
        model = peft.get_peft_model(model, lora_config(args))  # adapters in fp32 over bf16 weights, as peft makes them
        if args.adapter:
            peft.set_peft_model_state_dict(model, load_file(f"{args.adapter}/adapter_model.safetensors"))
    return model.train()


def rows(args: argparse.Namespace) -> torch.Tensor:
    """[steps, batch, seq]"""
    with open(args.text, encoding="utf-8") as lines:
        text = json.loads(lines.readline())["text"]
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{args.model}/tokenizer.json")
    ids = tokenizer(text)["input_ids"]
    needed = args.steps * args.batch * args.seq
    if len(ids) <= needed:
        sys.exit(f"train.py: {args.text} has {len(ids)} tokens, {needed} are needed")
    return torch.tensor(ids[:needed]).view(args.steps, args.batch, args.seq)


def ceiling(mode: str) -> float:
    """FLOP/s of a product in this mode's arithmetic, median of three."""
    dtype = torch.float32 if mode == "fp32" else torch.bfloat16
    a, b = (torch.full((CEILING_SIZE, CEILING_SIZE), 0.5, dtype=dtype) for _ in range(2))
    rates = []
    for _ in range(3):
        start = time.monotonic()
        torch.matmul(a, b)
        rates.append(2 * CEILING_SIZE**3 / (time.monotonic() - start))
    return statistics.median(rates)


def peak_bytes() -> int:
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    imported = peak_bytes()
    if args.make_adapter:
        load(args).save_pretrained(args.make_adapter)
        return
    ids = rows(args)
    if args.tokens_out:
        ids.to(torch.int32).numpy().tofile(args.tokens_out)
    model = load(args)
    step = torch.compile(model) if args.compile else model
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.lr, weight_decay=0.0, fused=True)

    for number, batch in enumerate(ids):
        start = time.monotonic()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.mode == "autocast"):
            loss = step(input_ids=batch, labels=batch).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        figures = {"step": number + 1, "loss": loss.item(), "grad_norm": norm.item()}
        end = time.monotonic()
        del loss
        figures |= {"seconds": end - start, "ended": end, "ceiling": ceiling(args.mode)}
        print(json.dumps(figures), flush=True)
    print(json.dumps({"peak_bytes": peak_bytes(), "imported_bytes": imported, "torch": torch.__version__, "transformers": transformers.__version__,
                      "peft": peft.__version__}), flush=True)


if __name__ == "__main__":
    main()
