"""Do transformers and PEFT get the loss that snug reports for what it trained?

    python tests/oracle/check_losses.py METRICS_JSONL MODEL_DIR DATA_JSONL [--adapter DIR] [--limit 1e-5]

Reads MODEL_DIR (and the adapter over it) in float32, tokenizes DATA_JSONL with its tokenizer.json as snug does (eos at the end;
prompt and completion: loss on the completion), runs each row alone, and holds the mean loss over all predicted tokens, the share
of tokens and of rows that greedy decoding would get right against the last evaluation in METRICS_JSONL. Exit code 1 above the limit.
"""

import argparse
import json
import pathlib
import sys

import peft
import tokenizers
import torch

import oracle


def rows_of(data, tokenizer, eos):
    """Token ids and the index of the first label of every row."""
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    for line in data.read_text().splitlines():
        row = json.loads(line)
        if "text" in row:
            yield encode(row["text"]) + [eos], 0
        else:
            prompt = encode(row["prompt"])
            yield prompt + encode(row["completion"]) + [eos], len(prompt)


@torch.no_grad()
def evaluate(model, rows):
    """Mean loss over predicted tokens, share of tokens right, share of rows right; all in float64."""
    loss = tokens = right = documents = exact = 0
    for ids, first_label in rows:
        first = max(first_label, 1)
        logits = model(torch.tensor([ids])).logits[0, first - 1:-1].double()
        targets = torch.tensor(ids[first:])
        loss += torch.nn.functional.cross_entropy(logits, targets, reduction="sum").item()
        hits = (logits.argmax(-1) == targets)
        tokens, right = tokens + len(targets), right + hits.sum().item()
        documents, exact = documents + 1, exact + int(hits.all().item())
    return {"eval_loss": loss / tokens, "eval_token_accuracy": right / tokens, "eval_exact": exact / documents,
            "eval_documents": documents}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("metrics", "model", "data"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--adapter", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=1e-5)
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.metrics.read_text().splitlines()]
    reported = [line for line in lines if "eval_loss" in line][-1]
    model = oracle.read_model(arguments.model)
    if arguments.adapter:
        model = peft.PeftModel.from_pretrained(model, arguments.adapter).eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
    expected = evaluate(model, list(rows_of(arguments.data, tokenizer, model.config.eos_token_id)))
    failed = False
    for key, value in expected.items():
        error = abs(reported[key] - value) / max(abs(value), 1e-30) if value else abs(reported[key])
        limit = arguments.limit if key == "eval_loss" else max(arguments.limit, 1e-8)
        print(f"  {key}: snug {reported[key]:.9g}, oracle {value:.9g}, relative error {error:.2e} (limit {limit:g})")
        failed = failed or not error <= limit
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
