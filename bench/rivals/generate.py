#!/usr/bin/env python3
"""Greedy decoding by transformers' generate: the rival in bench/generate.sh. Prints tokens/s of the tokens after the first (the
median of the rounds), how fast the prompt was read, and the ids, so that both sides can be compared."""

import argparse
import json
import statistics
import time

import torch
import transformers


class Clock(transformers.generation.streamers.BaseStreamer):
    """When the first token was there, and the last."""

    def __init__(self):
        self.times = []

    def put(self, value):
        self.times.append(time.perf_counter())

    def end(self):
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), required=True)
    parser.add_argument("--prompt", required=True)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.model)
    model = transformers.AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype)).eval()
    model.generation_config.eos_token_id = None
    prompt = tokenizer(args.prompt, return_tensors="pt")
    speeds, firsts, text = [], [], ""
    for _ in range(args.rounds):
        clock = Clock()
        start = time.perf_counter()
        with torch.inference_mode():
            ids = model.generate(**prompt, do_sample=False, max_new_tokens=args.tokens, pad_token_id=0, streamer=clock)[0]
        times = clock.times[1:]  # the prompt comes first
        speeds.append((len(times) - 1) / (times[-1] - times[0]))
        firsts.append(times[0] - start)
        text = tokenizer.decode(ids[prompt["input_ids"].shape[1]:], skip_special_tokens=True)
    print(json.dumps({"tokens_per_second": statistics.median(speeds), "prompt_tokens": prompt["input_ids"].shape[1],
                      "prompt_seconds": statistics.median(firsts), "text": text,
                      "versions": f"torch {torch.__version__}, transformers {transformers.__version__}"}))


if __name__ == "__main__":
    main()
