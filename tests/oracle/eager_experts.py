"""Rows of mixtures of experts, for eager_goldens.py: models whose experts lie in one tensor since transformers 5."""
MODELS = [("mistralai/Mixtral-8x7B-v0.1", 2), ("Qwen/Qwen3-30B-A3B", 3), ("allenai/OLMoE-1B-7B-0924", 4), ("ibm-granite/granite-3.1-1b-a400m-base", 6)]


def grid(settings):
    """A few ways to train each of them."""
    rows = []
    for model, layers in MODELS:
        at = dict(settings, model=model, layers=layers)
        for change in (dict(), dict(method="full", seq=256), dict(checkpointing="none"), dict(checkpointing="non_reentrant", amp="bf16"),
                       dict(amp="bf16", checkpointing="none", batch=1, seq=1024, dropout="0.05"), dict(batch=1, checkpointing="none", targets="all-linear"), dict(batch=3, seq=1500, amp="bf16"),
                       dict(method="full", amp="bf16", seq=256, checkpointing="non_reentrant", optim="adamw_bnb_8bit"), dict(quant="nf4-double", amp="bf16", targets="all-linear"),
                       dict(quant="nf4-double", prep="peft", amp="bf16", batch=1),
                       dict(sm=90, amp="bf16"), dict(attention="eager", amp="bf16", batch=1), dict(method="full", weights="float32", amp="bf16", seq=256)):
            rows.append(at | change)
    return rows


def ranks_grid(settings):
    """One rank among others; `settings` with those of eager_ranks."""
    olmoe, granite, mixtral, qwen = (dict(settings, model=model, layers=layers) for model, layers in (
        (MODELS[2][0], 3), (MODELS[3][0], 5), (MODELS[0][0], 2), (MODELS[1][0], 3)))
    again, full = dict(checkpointing="non_reentrant", amp="bf16"), dict(method="full", seq=256)
    return [olmoe | dict(checkpointing="none", ranks=4, sharding="ddp", amp="bf16"), granite | full | dict(checkpointing="non_reentrant", sharding="ddp"),
            olmoe | again | full | dict(ranks=4, sharding="fsdp2"), mixtral | dict(checkpointing="none", sharding="fsdp2", amp="bf16"),
            qwen | again | full | dict(sharding="zero2"), qwen | again | dict(sharding="fsdp1")]
