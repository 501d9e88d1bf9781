"""Shared by every oracle script: tiny random models, batches, the loss of transformers, and golden files.

Words as in src/: B sequences, T tokens, C hidden size, F MLP width, V vocabulary, H query heads, K key/value heads, D head size,
L layers. Two denominators of the loss are named everywhere:

  targets      predicted tokens: labels != -100 at positions 1.. of each document (position 0 has no predecessor)
  huggingface  labels != -100 counted *unshifted*, on every position: transformers' Trainer before huggingface/transformers#46204;
               since then it counts labels[..., 1:], which on rows of one document is `targets`

A batch is {"tokens": [B][T], "documents": [B][lengths that sum to T], "labels": [B][T]}: labels are unshifted, -100 is ignored.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import accelerate
import numpy
import peft
import safetensors
import safetensors.torch
import tokenizers
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = pathlib.Path("tests/golden")  # relative, so that no machine's path enters a file
IGNORED = -100

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
warnings.filterwarnings("ignore", category=FutureWarning)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


# ---- models -----------------------------------------------------------------------------------------------------------------

def tiny_config(C, L, H, K, F, V, *, tied=False, rope=None, positions=64, family=transformers.LlamaConfig, **more):
    """A configuration whose weights are large (0.2), so that attention is far from uniform and the loss far from ln V."""
    return family(
        hidden_size=C, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=K, intermediate_size=F, vocab_size=V,
        max_position_embeddings=positions, tie_word_embeddings=tied, rms_norm_eps=1e-5, initializer_range=0.2,
        rope_parameters=rope or {"rope_type": "default", "rope_theta": 10000.0}, **more)


def write_model(case, config, seed, dtype=torch.float32):
    """Writes a random model into tests/golden/CASE as transformers saves it; the case's older files are removed first."""
    directory = GOLDEN / case
    shutil.rmtree(directory, ignore_errors=True)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # norms are born as ones and biases as zeros, which would hide one that is forgotten
        for name, parameter in model.named_parameters():
            if "norm" in name or ".ln_" in name or name.endswith(".bias"):
                parameter += 0.3 * torch.randn_like(parameter)
    model.to(dtype).save_pretrained(directory)
    return directory


def read_model(directory, dtype=torch.float32):
    """A checkpoint in `dtype` with eager attention, no dropout; throws if a tensor is missing, left over or misshapen."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=dtype, attn_implementation="eager", output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs"):
        if info.get(kind):
            raise SystemExit(f"{directory}: {kind}: {sorted(map(str, info[kind]))}")
    return model.eval()


# ---- batches ----------------------------------------------------------------------------------------------------------------

def make_batch(generator, V, documents, keep=1.0):
    """Random tokens; each label is kept with probability `keep`, but at least the last of each row."""
    B, T = len(documents), sum(documents[0])
    tokens = torch.randint(V, (B, T), generator=generator)
    kept = torch.rand(B, T, generator=generator) < keep
    kept[:, -1] = True
    return {"tokens": tokens.tolist(), "documents": documents, "labels": tokens.where(kept, IGNORED).tolist()}


def document_spans(batch):
    """(row, begin, end) of every document."""
    for row, lengths in enumerate(batch["documents"]):
        begin = 0
        for length in lengths:
            yield row, begin, begin + length
            begin += length


def count_targets(*batches):
    return sum(label != IGNORED for batch in batches for row, begin, end in document_spans(batch)
               for label in batch["labels"][row][begin + 1:end])


def count_unshifted(*batches):
    return sum(label != IGNORED for batch in batches for row in batch["labels"] for label in row)


def forward(model, batch, denominator):
    """(loss, logits [B, T, V]): transformers' own loss with num_items_in_batch = denominator. Rows that are one document go
    through the model together; packed rows document by document, so that documents cannot see one another."""
    tokens, labels = torch.tensor(batch["tokens"]), torch.tensor(batch["labels"])
    items = torch.tensor(denominator)
    if all(len(lengths) == 1 for lengths in batch["documents"]):
        out = model(input_ids=tokens, labels=labels, num_items_in_batch=items, use_cache=False)
        return out.loss, out.logits
    loss, rows = 0.0, [[] for _ in tokens]
    for row, begin, end in document_spans(batch):
        out = model(input_ids=tokens[row:row + 1, begin:end], labels=labels[row:row + 1, begin:end], num_items_in_batch=items,
                    use_cache=False)
        loss = loss + out.loss
        rows[row].append(out.logits[0])
    return loss, torch.stack([torch.cat(row) for row in rows])


def logits_of(model, batch):
    with torch.no_grad():
        return forward(model, batch, 1)[1]


def first_step(batch):
    """The micro-batches of the first step of a batch.json of any of the three shapes."""
    batch = batch["steps"][0] if "steps" in batch else batch
    return batch["micro_batches"] if "micro_batches" in batch else [batch]


# ---- training ---------------------------------------------------------------------------------------------------------------

def accumulate(model, micro_batches, denominator):
    """Adds the gradients of every micro-batch; returns the losses (already divided by `denominator`) and the logits of each."""
    losses, logits = [], []
    for batch in micro_batches:
        loss, out = forward(model, batch, denominator)
        loss.backward()
        losses.append(loss.detach())
        logits.append(out.detach())
    return losses, logits


def train(model, optimizer, scheduler, steps, max_grad_norm=1.0):
    """One optimizer step for each entry of `steps`, normalised by its targets. Returns what metrics.jsonl says of each step."""
    trained = [p for p in model.parameters() if p.requires_grad]
    metrics = []
    for number, step in enumerate(steps):
        micro_batches = step["micro_batches"]
        losses, _ = accumulate(model, micro_batches, count_targets(*micro_batches))
        norm = torch.nn.utils.clip_grad_norm_(trained, max_grad_norm)
        metrics.append({"step": number, "loss": sum(loss.item() for loss in losses), "grad_norm": norm.item(),
                        "learning_rate": scheduler.get_last_lr()[0], "targets": count_targets(*micro_batches),
                        "unshifted_labels": count_unshifted(*micro_batches)})
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return metrics


# ---- golden files -----------------------------------------------------------------------------------------------------------

def relative_error(a, b):
    """‖a − b‖ / ‖b‖ in double."""
    a, b = a.detach().double(), b.detach().double()
    return ((a - b).norm() / b.norm()).item()


def gradients(parameters):
    """{"grad.NAME": gradient}; a parameter that got none has zeros."""
    return {f"grad.{name}": torch.zeros_like(p) if p.grad is None else p.grad for name, p in parameters}


def versions():
    modules = (torch, transformers, peft, accelerate, safetensors, tokenizers, numpy)
    return {"python": sys.version.split()[0]} | {m.__name__: m.__version__.split("+")[0] for m in modules}


def write_json(path, value):
    """Indented JSON, with lists of plain values kept on one line."""
    def text(v, indent):
        inner = indent + "  "
        if isinstance(v, dict) and v and not (indent and all(isinstance(x, (int, float)) for x in v.values())):
            return "{\n" + ",\n".join(f"{inner}{json.dumps(k)}: {text(x, inner)}" for k, x in v.items()) + f"\n{indent}}}"
        if isinstance(v, list) and any(isinstance(x, (dict, list)) for x in v):
            return "[\n" + ",\n".join(inner + text(x, inner) for x in v) + f"\n{indent}]"
        return json.dumps(v, allow_nan=False, ensure_ascii=False)
    path.write_text(text(value, "") + "\n")


def write_golden(case, batch, tensors, expected):
    """batch.json, expected.safetensors, expected.json of tests/golden/CASE."""
    directory = GOLDEN / case
    write_json(directory / "batch.json", batch)
    safetensors.torch.save_file({k: v.detach().contiguous().clone() for k, v in tensors.items()}, directory / "expected.safetensors",
                                metadata={"format": "pt"})
    write_json(directory / "expected.json", {"case": case, "versions": versions()} | expected)
    for file in directory.rglob("*.safetensors"):
        file.chmod(0o644)
    print(f"{case}: {sum(f.stat().st_size for f in directory.rglob('*') if f.is_file())} bytes")


@contextlib.contextmanager
def recorded_warnings():
    """A list that receives the first sentence of every distinct warning raised inside, deprecations aside."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    for warning in caught:
        sentence = " ".join(str(warning.message).split()).split(". ")[0].rstrip(".") + "."
        if sentence not in messages and not issubclass(warning.category, FutureWarning):
            messages.append(sentence)


# ---- checks of what snug wrote ----------------------------------------------------------------------------------------------

def check_arguments(doc, *directories):
    """Command line of a check: the named directories, TOKENS_JSON, EXPECTED.safetensors, --tensor NAME."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in (*directories, "tokens", "expected"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--tensor", default="logits")
    return parser.parse_args()


def check_logits(model, arguments, limit=1e-4):
    """Prints the norm-wise relative error of the model's logits; exits 1 above `limit` or if it is not a number."""
    micro_batches = first_step(json.loads(arguments.tokens.read_text()))
    actual = torch.cat([logits_of(model, batch) for batch in micro_batches])
    expected = safetensors.torch.load_file(arguments.expected)[arguments.tensor]
    if actual.shape != expected.shape:
        raise SystemExit(f"{arguments.tensor}: shape {list(actual.shape)}, expected {list(expected.shape)}")
    error = relative_error(actual, expected)
    print(f"{arguments.tensor}: relative error {error:.3e} (limit {limit:g})")
    if not error <= limit:
        sys.exit(1)
