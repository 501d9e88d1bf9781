"""Evaluation between the steps of a run, for eager_goldens.py: Trainer's own evaluation loop, after each optimizer step."""

# eval_rows: of the evaluation data; eval_seq: 0: as in training; metrics: compute_metrics is given, so logits and labels are kept;
# moved: eval_accumulation_steps, 0: none; cache: the model's own use_cache is left on
SETTINGS = dict(eval_rows=8, eval_batch=8, eval_seq=0, metrics=0, moved=0, cache=0)


def data(row, torch):
    """Rows of the evaluation, all of one length."""
    ids = torch.zeros(row["eval_seq"] or row["seq"], dtype=torch.long)
    return [dict(input_ids=ids, attention_mask=ids + 1, labels=ids)] * row["eval_rows"]


def options(row):
    """What TrainingArguments are told."""
    told = dict(eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=row["eval_batch"])
    if row["moved"]:
        told["eval_accumulation_steps"] = row["moved"]
    return told


def ranks_grid(settings):
    """One rank among others that evaluates; `settings` with those of eager_ranks."""
    at = settings | SETTINGS | dict(model="TinyLlama/TinyLlama-1.1B-Chat-v1.0", layers=6, eval_rows=10, eval_batch=4, amp="bf16", checkpointing="non_reentrant")
    return [at | change for change in (
        dict(sharding="ddp", checkpointing="none"), dict(sharding="fsdp2", method="full"), dict(sharding="fsdp2"), dict(sharding="zero2", method="full"),
        dict(sharding="zero3", method="full"), dict(sharding="fsdp1", method="full"), dict(sharding="fsdp1", checkpointing="none"))]


def grid(settings):
    """Ways to evaluate, around a few models."""
    small = [("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 6), ("Qwen/Qwen2.5-0.5B", 6), ("meta-llama/Llama-3.2-1B", 4), ("google/gemma-2-2b", 4)]
    rows = []

    def add(**change):
        rows.append(settings | SETTINGS | change)

    for model, layers in small:
        at = dict(model=model, layers=layers)
        add(**at)
        add(**at, amp="bf16", checkpointing="non_reentrant", eval_rows=20)
        add(**at, method="full", amp="bf16", weights="float32", seq=256, eval_batch=4, eval_rows=6)
        add(**at, amp="bf16", quant="nf4-double", prep="peft", targets="all-linear", dropout="0.1", eval_batch=2, eval_seq=1024, eval_rows=3)
        add(**at, amp="bf16", batch=1, seq=128, eval_batch=2, eval_rows=9, metrics=1)
        add(**at, checkpointing="none", seq=128, eval_batch=2, eval_rows=10, metrics=1, moved=2)
        add(**at, attention="eager", checkpointing="none", eval_rows=4, eval_batch=3, cache=1)
    model, layers = small[0]
    add(model=model, layers=layers, eval_rows=16, cache=1, amp="bf16")
    add(model=model, layers=layers, method="full", seq=128, eval_batch=1, eval_rows=12, metrics=1)
    add(model=model, layers=layers, quant="int8", prep="peft", amp="bf16", eval_batch=4, eval_rows=8)
    add(model=model, layers=layers, dora=1, checkpointing="none", targets="all-linear", amp="bf16", eval_rows=8)
    add(model=model, layers=layers, attention="flash", amp="bf16", accum=2, batch=1, eval_rows=9)
    add(model="openai-community/gpt2", layers=0, targets="c_attn:c_proj", eval_rows=8, batch=1, amp="bf16")
    add(model="microsoft/Phi-3-mini-4k-instruct", layers=4, targets="qkv_proj:o_proj", eval_rows=8, dropout="0.05")
    add(model="meta-llama/Llama-2-7b-hf", layers=0, amp="bf16", quant="nf4-double", prep="peft", targets="all-linear", batch=1, seq=1024, eval_rows=8)
    return rows
