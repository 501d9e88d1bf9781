"""The rows of eager_goldens.py and scripts/measure_torch.py: ways to fine-tune, each a dict of settings."""
import random

SETTINGS = dict(model="meta-llama/Llama-3.2-1B", layers=0, method="lora", dora=0, targets="q_proj:k_proj:v_proj:o_proj", rank=16, dropout="0",
                quant="none", prep="none", weights="bfloat16", amp="none", attention="sdpa", checkpointing="reentrant",
                optim="adamw_torch", batch=2, seq=512, accum=1, padded=0, loss="stock", sm=80)
SAVED = dict(saved="")  # modules_to_save


def grid(transformers_version):
    """Rows around common ways to train; every axis is walked on a few models."""
    new = transformers_version >= (4, 51)
    small = [("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 6), ("meta-llama/Llama-3.2-1B", 4), ("mistralai/Mistral-7B-v0.1", 3), ("Qwen/Qwen2.5-0.5B", 6),
             ("Qwen/Qwen2.5-1.5B", 5), ("google/gemma-2b", 4), ("google/gemma-2-2b", 4), ("microsoft/Phi-3-mini-4k-instruct", 4), ("openai-community/gpt2", 0)]
    if new:
        small += [("Qwen/Qwen3-0.6B", 6), ("Qwen/Qwen3-4B", 4), ("google/gemma-3-1b-pt", 7)]
    rows = []

    def add(**change):
        row = dict(SETTINGS, **change)
        if row["model"].endswith("gpt2") and row["targets"] == SETTINGS["targets"]:
            row["targets"] = "c_attn:c_proj"
        if "phi" in row["model"].lower() and row["targets"] == SETTINGS["targets"]:
            row["targets"] = "qkv_proj:o_proj"
        if row not in rows:
            rows.append(row)

    for model, layers in small:
        at = dict(model=model, layers=layers)
        add(**at)
        add(**at, method="full", seq=256)
        add(**at, targets="all-linear", dropout="0.05", batch=1, seq=1024)
        add(**at, checkpointing="none")
        add(**at, checkpointing="non_reentrant", amp="bf16")
        add(**at, method="full", amp="bf16", weights="float32", seq=256)
        add(**at, method="full", weights="float32", amp="fp16", checkpointing="none", seq=256)
        add(**at, attention="eager", amp="bf16")
        add(**at, attention="eager", checkpointing="none", batch=1)
        add(**at, amp="bf16", quant="nf4-double", prep="peft", targets="all-linear") if "gpt2" not in model else None
    for model, layers in small[:4]:
        at = dict(model=model, layers=layers)
        add(**at, attention="flash")
        add(**at, attention="flash", amp="bf16", method="full", optim="adamw_torch_fused")
        add(**at, quant="nf4-double", prep="none")
        add(**at, quant="nf4-double", prep="trl", amp="bf16", dropout="0.1", optim="paged_adamw_8bit")
        add(**at, quant="nf4", prep="peft", amp="bf16", checkpointing="none")
        add(**at, quant="int8", prep="peft", amp="bf16")
        add(**at, quant="int8", prep="none", weights="float16", amp="fp16")
        add(**at, dora=1)
        add(**at, dora=1, checkpointing="none", targets="all-linear", amp="bf16")
        for optim in ("adamw_torch_fused", "adamw_bnb_8bit", "paged_adamw_32bit", "lion_8bit", "lion_32bit", "adafactor", "sgd"):
            add(**at, method="full", optim=optim, seq=128)
        add(**at, accum=4, batch=1)
        add(**at, accum=2, method="full", seq=256)
        add(**at, padded=1, batch=3)
        add(**at, padded=1, batch=2, attention="eager", checkpointing="none")
        add(**at, weights="float32")
        add(**at, weights="float32", amp="bf16", checkpointing="none")
        add(**at, sm=90)
        add(**at, sm=89, method="full", seq=256)
        add(**at, batch=8, seq=200, rank=64, targets="q_proj:v_proj")
    # rows as long as a block's window
    add(model="mistralai/Mistral-7B-v0.1", layers=3, seq=4096, amp="bf16", checkpointing="none")
    add(model="mistralai/Mistral-7B-v0.1", layers=3, seq=4096, amp="bf16", checkpointing="non_reentrant", targets="all-linear")
    add(model="microsoft/Phi-3-mini-4k-instruct", layers=4, seq=2048, checkpointing="none")
    if new:
        add(model="google/gemma-3-1b-pt", layers=7, batch=3, seq=1024, method="full", amp="bf16", checkpointing="non_reentrant")
    for model in ("meta-llama/Llama-2-7b-hf", "meta-llama/Meta-Llama-3-8B", "mistralai/Mistral-7B-v0.1", "Qwen/Qwen2.5-7B"):
        add(model=model, batch=4, seq=1024)
        add(model=model, batch=1, seq=4096, method="full")
        add(model=model, batch=2, seq=2048, quant="nf4-double", prep="peft", amp="bf16", targets="all-linear", optim="paged_adamw_8bit")
    return rows


# Families whose blocks differ from Llama's, and a model of each with so many layers.
FAMILIES = [("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 3), ("allenai/OLMo-2-0425-1B", 4), ("ibm-granite/granite-3.1-2b-instruct", 4), ("microsoft/phi-1_5", 4), ("microsoft/phi-2", 3),
            ("stabilityai/stablelm-2-1_6b", 4), ("stabilityai/stablelm-3b-4e1t", 3), ("zai-org/glm-4-9b-hf", 2), ("nvidia/Minitron-4B-Base", 3),
            ("facebook/opt-125m", 0), ("facebook/opt-1.3b", 4)]
LATER_FAMILIES = [("baidu/ERNIE-4.5-0.3B-PT", 4), ("LGAI-EXAONE/EXAONE-4.0-1.2B", 4), ("LGAI-EXAONE/EXAONE-4.0-32B", 4),
                  ("allenai/Olmo-3-1025-7B", 4), ("HuggingFaceTB/SmolLM3-3B", 8), ("zai-org/GLM-4-9B-0414", 2), ("ByteDance-Seed/Seed-OSS-36B-Base", 2), ("google/gemma-3-4b-pt", 7)]

# With layers of a gated delta rule, by PyTorch's own ops: flash-linear-attention must not be installed.
HYBRID_FAMILIES = [("Qwen/Qwen3.5-0.8B", 4), ("Qwen/Qwen3.5-4B", 4), ("Qwen/Qwen3.5-9B", 4)]


def hybrids():
    """Ways to train those whose layers have a gated delta rule."""
    changes = [dict(), dict(method="full", seq=256), dict(targets="all-linear", dropout="0.05", batch=1, seq=1024), dict(checkpointing="none"),
               dict(checkpointing="non_reentrant", amp="bf16"), dict(method="full", amp="bf16", weights="float32", seq=256, checkpointing="none"),
               dict(amp="bf16", quant="nf4-double", prep="peft", targets="all-linear"), dict(seq=300, batch=3, padded=1, checkpointing="none"),
               dict(seq=700, batch=1, quant="nf4-double", prep="peft", amp="bf16", targets="all-linear", checkpointing="none"), dict(weights="float32", checkpointing="none", sm=90)]
    return [dict(SETTINGS, model=model, layers=layers, **change) for model, layers in HYBRID_FAMILIES for change in changes]


def families(transformers_version):
    """A few ways to train each of them."""
    rows = []
    for model, layers in FAMILIES + (LATER_FAMILIES if transformers_version >= (4, 57) else []) + (HYBRID_FAMILIES if transformers_version >= (5, 20) else []):
        at = dict(model=model, layers=layers)
        for change in (dict(), dict(method="full", seq=256), dict(targets="all-linear", dropout="0.05", batch=1, seq=1024), dict(checkpointing="none"),
                       dict(checkpointing="non_reentrant", amp="bf16"), dict(method="full", amp="bf16", weights="float32", seq=256),
                       dict(attention="eager", amp="bf16"), dict(amp="bf16", checkpointing="none", batch=1),
                       dict(amp="bf16", quant="nf4-double", prep="peft", targets="all-linear"), dict(weights="float16", amp="bf16", checkpointing="none")):
            rows.append(dict(SETTINGS, **at, **change))
    if transformers_version >= (5, 20):  # chunks that rows fill and do not
        for change in (dict(seq=300, batch=3, padded=1, checkpointing="none"), dict(seq=700, batch=1, quant="nf4-double", prep="peft", amp="bf16", targets="all-linear", checkpointing="non_reentrant"),
                       dict(weights="float32", checkpointing="none", targets="all-linear", dropout="0.1"), dict(dora=1, checkpointing="none", targets="all-linear"), dict(seq=2048, batch=1, quant="int8", prep="peft", amp="bf16", sm=90)):
            rows += [dict(SETTINGS, model=model, layers=layers, **change) for model, layers in HYBRID_FAMILIES[:2]]
    return rows


def liger(transformers_version):
    """Liger's kernels (use_liger_kernel), around the families that most people use them with."""
    rows = []
    models = [("meta-llama/Llama-3.2-1B", 4), ("Qwen/Qwen2.5-0.5B", 6), ("mistralai/Mistral-7B-v0.1", 3), ("google/gemma-2b", 4), ("google/gemma-2-2b", 4)]
    if transformers_version >= (4, 51):
        models += [("Qwen/Qwen3-0.6B", 6)]
    for model, layers in models:
        at = dict(SETTINGS, model=model, layers=layers, loss="liger")
        for change in (dict(), dict(method="full", seq=256, checkpointing="none"), dict(method="full", seq=256, amp="bf16", checkpointing="non_reentrant"),
                       dict(method="full", amp="bf16", weights="float32", seq=256, checkpointing="none"), dict(amp="bf16", checkpointing="none", batch=1, seq=1024, targets="all-linear"),
                       dict(amp="bf16", quant="nf4-double", prep="peft", targets="all-linear"), dict(attention="eager", amp="bf16"), dict(attention="flash", checkpointing="none")):
            rows.append(at | change)
    return rows


def saved():
    """The embedding and the head trained whole beside an adapter."""
    rows = []
    for model, layers, names in (("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 4, "embed_tokens:lm_head"), ("Qwen/Qwen2.5-7B", 2, "embed_tokens:lm_head"),
                                 ("mistralai/Mistral-7B-v0.1", 2, "lm_head"), ("microsoft/phi-2", 3, "embed_tokens")):
        at = dict(SETTINGS, model=model, layers=layers, saved=names)
        for change in (dict(), dict(amp="bf16", targets="all-linear", rank=64, dropout="0.05", batch=1, accum=4), dict(amp="bf16", seq=256, checkpointing="none"),
                       dict(amp="bf16", checkpointing="non_reentrant", seq=1024, batch=1), dict(optim="adamw_torch_fused"), dict(weights="float32", amp="bf16")):
            rows.append(at | change)
    return rows


def sample(number, seed, transformers_version):
    """So many rows drawn at random from models and settings, most of them not in the grid: to see whether the model holds beyond it."""
    models = [("HuggingFaceTB/SmolLM2-360M", 8), ("HuggingFaceTB/SmolLM2-1.7B", 5), ("meta-llama/Llama-3.2-3B", 4), ("Qwen/Qwen2.5-3B", 5),
              ("mistralai/Mistral-Nemo-Base-2407", 2), ("microsoft/phi-4", 3), ("openai-community/gpt2-medium", 9), ("Qwen/Qwen2-1.5B", 6)]
    if transformers_version >= (4, 51):
        models += [("Qwen/Qwen3-1.7B", 5), ("google/gemma-3-270m", 8)]
    draw = random.Random(seed)
    rows = []
    while len(rows) < number:
        model, layers = draw.choice(models)
        row = dict(SETTINGS, model=model, layers=layers, batch=draw.choice([1, 2, 3, 5]), seq=draw.choice([96, 250, 384, 777, 1536]), sm=draw.choice([80, 89, 90]),
                   accum=draw.choice([1, 1, 1, 2]), checkpointing=draw.choice(["none", "reentrant", "non_reentrant"]), attention=draw.choice(["sdpa", "sdpa", "eager"]))
        row["amp"], row["weights"] = draw.choice([("none", "bfloat16"), ("bf16", "bfloat16"), ("bf16", "float32"), ("fp16", "float32")])
        gpt2, phi = "gpt2" in model, "phi" in model.lower()
        if draw.random() < 0.4:
            row.update(method="full", optim=draw.choice(["adamw_torch", "adamw_torch_fused", "adamw_bnb_8bit", "adafactor", "lion_32bit"]))
        else:
            row.update(rank=draw.choice([4, 8, 32, 100]), dropout=draw.choice(["0", "0.1"]), optim=draw.choice(["adamw_torch", "paged_adamw_8bit"]))
            row["targets"] = "c_attn:c_proj" if gpt2 else "qkv_proj:o_proj" if phi else draw.choice(["all-linear", "q_proj:v_proj", "q_proj:k_proj:v_proj:o_proj"])
            if not gpt2 and row["weights"] == "bfloat16" and draw.random() < 0.5:
                row.update(quant=draw.choice(["nf4-double", "nf4", "int8"]), prep="peft")
        rows.append(row)
    return rows
