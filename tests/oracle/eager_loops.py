#!/usr/bin/env python3
"""Goldens of the eager model for trainers with model code and a loop of their own: LitGPT and torchtune on a null device.

Each row is a run of litgpt.finetune.lora.fit or litgpt.finetune.full.fit, around a model that is made as `main` of those files makes it, in a
process of its own; one line a run is written, as eager_goldens.py does (whose --null-device, --row and --trace mean the same here).

torchtune's rows are runs of the loops of its recipes for one device, around its own component builders.

  eager_loops.py --null-device DIR --trainer litgpt
  eager_loops.py --null-device DIR --row model=openai-community/gpt2,batch=4 --trace t.jsonl
"""
import argparse, collections, csv, gc, importlib.util, inspect, json, os, pathlib, re, sys, types

from importlib.metadata import version

import eager_goldens
from eager_goldens import ROOT

SETTINGS = dict(trainer="litgpt", model="TinyLlama/TinyLlama-1.1B-Chat-v1.0", layers=4, method="lora", targets="query:value", rank=32, dropout="0.05",
                quant="none", weights="bfloat16", optim="adamw_torch", batch=2, seq=512, accum=2, checkpointing="none", sm=80)
RESULTS = ["vocab", "positions", "torch", "litgpt", "bitsandbytes", "static", "allocated", "phase", "reserved", "steady", "forward", "backward", "optimizer"]
NAMES = {"TinyLlama/TinyLlama-1.1B-Chat-v1.0": "tiny-llama-1.1b-chat", "meta-llama/Llama-3.2-1B": "Llama-3.2-1B", "google/gemma-2b": "Gemma-2b",
         "google/gemma-2-2b": "Gemma-2-2b", "microsoft/phi-2": "phi-2", "microsoft/phi-1_5": "phi-1_5", "mistralai/Mistral-7B-v0.1": "Mistral-7B-v0.1",
         "microsoft/Phi-3-mini-4k-instruct": "Phi-3-mini-4k-instruct", "meta-llama/Llama-2-7b-hf": "Llama-2-7b-hf", "meta-llama/Meta-Llama-3-8B": "Llama-3-8B"}


class Marks:
    """Peaks by phase, as eager_goldens.run notes them."""
    def __init__(self, cuda):
        self.cuda, self.peaks, self.marks = cuda, collections.defaultdict(lambda: [0, 0]), []

    def __call__(self, name):
        s = self.cuda.memory_stats()
        if self.marks:
            peak = self.peaks[self.marks[-1][1]]
            peak[:] = max(peak[0], s["allocated_bytes.all.peak"]), max(peak[1], s["reserved_bytes.all.peak"])
        self.cuda.reset_peak_memory_stats()
        self.marks.append((s.get("allocation.all.allocated", 0), name))


def run(row, trace=None):
    """One fine-tuning run; returns the row with its results."""
    os.environ["SNUG_NULL_SM"] = str(row["sm"])
    import torch
    if trace:
        torch.cuda.memory._record_memory_history(context=None, max_entries=10**9)
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, lambda t, *x, **k: t)
    torch.backends.cudnn.enabled = False  # whose convolutions need a card; PyTorch's own keep and give the same tensors, without a workspace
    mark = Marks(torch.cuda)
    mark("load")
    {"litgpt": litgpt_run, "torchtune": torchtune_run}[row["trainer"]](row, torch, mark)
    gc.collect()
    mark("end")
    mark.peaks.pop("load")
    name, peak = max(mark.peaks.items(), key=lambda kv: kv[1][0])
    row.update({m: sys.modules[m].__version__.split("+")[0] if m in sys.modules else "" for m in ("torch", "bitsandbytes")})
    row.update({row["trainer"]: version(row["trainer"])})
    row.update( allocated=peak[0], phase=name, reserved=max(v[1] for v in mark.peaks.values()))
    row.update({p: mark.peaks[p][0] for p in ("forward", "backward", "optimizer")})
    if trace:
        eager_goldens.write_trace(trace, torch.cuda.memory._snapshot()["device_traces"][0], mark.marks)
    return row


def litgpt_run(row, torch, mark):
    """`main` of litgpt/finetune/lora.py or full.py, without files."""
    import lightning as L
    from lightning.fabric.plugins import BitsandbytesPrecision
    import litgpt.finetune.full as full
    import litgpt.finetune.lora as lora
    from litgpt.args import EvalArgs, TrainArgs
    script = full if row["method"] == "full" else lora
    keys = {f"lora_{name}": name in row["targets"].split(":") for name in ("query", "key", "value", "projection", "mlp", "head")}
    more = {} if script is full else dict(keys, lora_r=row["rank"], lora_alpha=16, lora_dropout=float(row["dropout"]))
    config = script.Config.from_name(NAMES[row["model"]], **({"n_layer": row["layers"]} if row["layers"] else {}), **more)
    row.update(vocab=config.padded_vocab_size, positions=config.block_size)
    precision, plugins = {"bfloat16": "bf16-true", "float32": "32-true"}[row["weights"]], None
    if row["quant"] != "none":
        plugins, precision = BitsandbytesPrecision({"nf4": "nf4", "nf4-double": "nf4-dq"}[row["quant"]], torch.bfloat16), None
    fabric = L.Fabric(devices=1, accelerator="cuda", strategy="auto", precision=precision, plugins=plugins)
    with fabric.init_module(empty_init=False):
        model = script.GPT(config)
    if script is lora:
        lora.mark_only_lora_as_trainable(model)
        model = fabric.setup_module(model)
    else:
        model = fabric.setup(model)
    make = lora.instantiate_bnb_optimizer if plugins else script.instantiate_torch_optimizer
    optimizer = make({"class_path": "torch.optim.AdamW", "init_args": {"lr": 1e-4}}, model.parameters())
    if plugins and "StableEmbedding" in inspect.getsource(lora.main):
        from bitsandbytes.nn import StableEmbedding
        old = model.transformer.wte
        model.transformer.wte = StableEmbedding(old.num_embeddings, old.embedding_dim).to(device=old.weight.device, dtype=old.weight.dtype)

    optimizer = fabric.setup_optimizers(optimizer)
    scheduler = script.get_lr_scheduler(optimizer, warmup_steps=10, max_steps=100)
    steps, B, T = 2, row["batch"], row["seq"]
    sample = dict(input_ids=torch.zeros(T, dtype=torch.long), labels=torch.zeros(T, dtype=torch.long))
    collate = __import__("litgpt.data.base", fromlist=["x"]).get_sft_collate_fn(max_seq_length=T)
    loader = torch.utils.data.DataLoader([sample] * (B * row["accum"] * (steps + 1)), batch_size=B, collate_fn=collate)
    train_loader, val_loader = fabric.setup_dataloaders(loader, torch.utils.data.DataLoader([sample] * B, batch_size=B, collate_fn=collate))
    script.Tokenizer = lambda *x: None
    observe(script, fabric, optimizer, model, mark, row, torch)
    train = TrainArgs(save_interval=None, log_interval=1, global_batch_size=B * row["accum"], micro_batch_size=B, lr_warmup_steps=10, epochs=9, max_steps=steps,
                      max_seq_length=T)
    evaluate = EvalArgs(interval=100, max_new_tokens=10, max_iters=2)
    if script is lora:
        lora.fit(fabric, model, optimizer, scheduler, train_loader, val_loader, 1, pathlib.Path("."), pathlib.Path("."), train, evaluate, None)
    else:
        state = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "iter_num": 0, "step_count": 0}
        full.fit(fabric, state, train_loader, val_loader, 1, None, pathlib.Path("."), pathlib.Path("."), train, evaluate, None)


def torchtune_run(row, torch, mark):
    """The loop of recipes/full_finetune_single_device.py or lora_finetune_single_device.py, around a model as their _setup_model makes it."""
    import contextlib
    from torchtune import modules, training
    from torchtune.models import llama2, llama3_2, mistral
    from torchtune.modules.loss import CEWithChunkedOutputLoss
    from torchtune.modules.peft import get_adapter_params, set_trainable_params
    lora = row["method"] == "lora"
    name = "lora_finetune_single_device" if lora else "full_finetune_single_device"
    import torchtune
    where = pathlib.Path(torchtune.__file__).parent.parent / "recipes" / f"{name}.py"  # a folder of scripts, no package
    spec = importlib.util.spec_from_file_location(name, where)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    recipe = object.__new__(script.LoRAFinetuneRecipeSingleDevice if lora else script.FullFinetuneRecipeSingleDevice)
    config = eager_goldens.configuration(dict(row, layers=row["layers"]))
    targets = row["targets"].split(":")
    sizes = dict(vocab_size=config["vocab_size"], num_layers=config["num_hidden_layers"], num_heads=config["num_attention_heads"],
                 num_kv_heads=config["num_key_value_heads"], embed_dim=config["hidden_size"], intermediate_dim=config["intermediate_size"], max_seq_len=4096)
    tied = config.get("tie_word_embeddings", False)
    package = llama3_2 if tied else mistral if "mistral" in row["model"].lower() else llama2
    if lora:
        more = dict(lora_attn_modules=[{"o_proj": "output_proj"}.get(t, t) for t in targets if t in ("q_proj", "k_proj", "v_proj", "o_proj")],
                    apply_lora_to_mlp="gate_proj" in targets, lora_rank=row["rank"], lora_alpha=16, lora_dropout=float(row["dropout"]))
        build = {llama3_2: "lora_llama3_2", mistral: "lora_mistral", llama2: "lora_llama2"}[package]
        more |= {} if tied else {"apply_lora_to_output": "lm_head" in targets}
    else:
        build, more = {llama3_2: "llama3_2", mistral: "mistral", llama2: "llama2"}[package], {}
    device = torch.device("cuda", 0)
    with training.set_default_dtype(getattr(torch, row["weights"])), device:
        model = getattr(importlib.import_module(package.__name__ + "._component_builders"), build)(**sizes, **more)
    if lora:
        set_trainable_params(model, get_adapter_params(model))
    if row["checkpointing"] != "none":
        training.set_activation_checkpointing(model, auto_wrap_policy={modules.TransformerSelfAttentionLayer})
    steps, B, T = 2, row["batch"], row["seq"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if row["optim"] == "adamw_torch_fused" else {}))
    loss = CEWithChunkedOutputLoss()
    model.set_num_output_chunks(loss.num_output_chunks)

    class Batches(list):
        sampler = types.SimpleNamespace(set_epoch=lambda epoch: None)
    batches = Batches(dict(tokens=torch.zeros(B, T, dtype=torch.long), labels=torch.zeros(B, T, dtype=torch.long)) for _ in range(steps * row["accum"]))

    class Quiet(contextlib.nullcontext):
        start = stop = step = lambda self: None
    quiet = Quiet()
    quiet.enter_result = quiet
    vars(recipe).update(_model=model, _optimizer=optimizer, _loss_fn=loss, _dataloader=batches, _device=device, _compile=False, _optimizer_in_bwd=False,
                        _gradient_accumulation_steps=row["accum"], _clip_grad_norm=None, _lr_scheduler=quiet, global_step=0, epochs_run=0, total_epochs=1,
                        _steps_per_epoch=steps, max_steps_per_epoch=steps, _log_every_n_steps=100, _log_peak_memory_stats=False, _profiler=quiet,
                        profiler_profile_memory=False, activations_handling_ctx=contextlib.nullcontext(), save_checkpoint=lambda epoch: None,
                        ignore_labels_cache=torch.full((B, 1), loss.ignore_index, device=device))
    gc.collect()
    torch.cuda.empty_cache()
    mark("between steps")
    row.update(static=torch.cuda.memory_allocated(), vocab=config["vocab_size"], positions=4096)
    observe_torchtune(script, optimizer, model, mark, row, torch)
    recipe.train()


def observe_torchtune(script, optimizer, model, mark, row, torch):
    """Notes where phases begin."""
    back, step, zero = torch.Tensor.backward, optimizer.step, optimizer.zero_grad

    def backward(*x, **k):
        mark("backward")
        back(*x, **k)
        mark("between steps")

    def update(*x, **k):
        mark("optimizer")
        step(*x, **k)
        mark("between steps")

    def clear(*x, **k):
        zero(*x, **k)
        row["steady"] = torch.cuda.memory_allocated()
    torch.Tensor.backward, optimizer.step, optimizer.zero_grad = backward, update, clear
    model.register_forward_pre_hook(lambda *x: mark("forward"))


def observe(script, fabric, optimizer, model, mark, row, torch):
    """Notes where phases begin; what is run is not changed."""
    validate, backward, step = script.validate, fabric.backward, optimizer.step

    def begin(*x, **k):
        gc.collect()
        torch.cuda.empty_cache()
        mark("evaluate")
        row["static"] = torch.cuda.memory_allocated()
        out = validate(*x, **k)
        mark("between steps")
        return out

    def back(*x, **k):
        mark("backward")
        backward(*x, **k)
        mark("between steps")

    def update(*x, **k):
        mark("optimizer")
        step(*x, **k)
        mark("between steps")

    def clear(*x, **k):
        zero(*x, **k)
        row["steady"] = torch.cuda.memory_allocated()
    zero = optimizer.zero_grad
    script.validate, fabric.backward, optimizer.step, optimizer.zero_grad = begin, back, update, clear
    model.register_forward_pre_hook(lambda module, *x: mark("forward") if module.training else None)


def litgpt_grid():
    """Rows around LitGPT's own recipes (config_hub/finetune)."""
    rows = []

    def add(**change):
        rows.append(dict(SETTINGS, **change))
    every = "query:key:value:projection:mlp:head"
    small = [("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 4), ("meta-llama/Llama-3.2-1B", 3), ("google/gemma-2b", 3), ("google/gemma-2-2b", 3), ("microsoft/phi-2", 3),
             ("mistralai/Mistral-7B-v0.1", 2), ("microsoft/Phi-3-mini-4k-instruct", 3), ("meta-llama/Llama-2-7b-hf", 2)]
    for model, layers in small:
        at = dict(model=model, layers=layers)
        add(**at)
        add(**at, targets=every, rank=8)
        add(**at, quant="nf4", optim="paged_adamw_32bit")
        add(**at, quant="nf4-double", optim="paged_adamw_32bit", targets=every, batch=1)
        add(**at, method="full", batch=1)
        add(**at, method="full", accum=1, seq=384, batch=4)
        add(**at, dropout="0", batch=1, accum=1, seq=1000)
    add(model="TinyLlama/TinyLlama-1.1B-Chat-v1.0", layers=0, targets=every, batch=8)
    add(model="meta-llama/Llama-2-7b-hf", layers=0)
    return rows


def torchtune_grid():
    """Rows around torchtune's recipes for one device."""
    rows = []
    small = [("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 4), ("meta-llama/Llama-3.2-1B", 3), ("mistralai/Mistral-7B-v0.1", 2), ("meta-llama/Llama-2-7b-hf", 2)]
    for model, layers in small:
        at = dict(SETTINGS, trainer="torchtune", model=model, layers=layers, rank=8, dropout="0", targets="q_proj:v_proj:o_proj")
        for change in (dict(), dict(targets="q_proj:k_proj:v_proj:o_proj:gate_proj:up_proj:down_proj", dropout="0.05", batch=1), dict(checkpointing="non_reentrant", seq=1024),
                       dict(checkpointing="non_reentrant", targets="q_proj:v_proj", rank=64, accum=1, optim="adamw_torch_fused"),
                       dict(method="full", optim="adamw_torch_fused"), dict(method="full", batch=1, checkpointing="non_reentrant", accum=1),
                       dict(method="full", batch=1, seq=300, weights="float32")):
            rows.append(dict(at, **change))
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--null-device", help="folder of the library to preload")
    p.add_argument("--trainer", choices=["litgpt", "torchtune"], default="litgpt")
    p.add_argument("--out", help="tests/golden/eager_litgpt.csv, eager_torchtune.csv")
    p.add_argument("--row", help="one run: setting=value,…")
    p.add_argument("--trace", help="with --row: every event of the allocator, as JSON lines")
    p.add_argument("--only", default="", help="rows whose settings, joined by commas, match this pattern")
    a = p.parse_args()
    if "SNUG_NULL_DEVICE" not in os.environ and a.null_device:
        eager_goldens.enter(a.null_device)
    eager_goldens.run = run
    if a.row:
        row = dict(SETTINGS, **{k: type(SETTINGS[k])(v) for k, v in (x.split("=", 1) for x in a.row.split(","))})
        print(json.dumps(eager_goldens.forked(row, a.trace)))
        return
    path = pathlib.Path(a.out or ROOT / f"tests/golden/eager_{a.trainer}.csv")
    old = list(csv.DictReader(path.open())) if path.exists() else []
    key = lambda r: tuple(str(r[k]) for k in SETTINGS)  # noqa: E731
    done = {key(r) for r in old if r[a.trainer] == version(a.trainer)}
    with path.open("a", newline="") as out:
        columns = [a.trainer if column == "litgpt" else column for column in [*SETTINGS, *RESULTS]]
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        if not old:
            writer.writeheader()
        for row in litgpt_grid() if a.trainer == "litgpt" else torchtune_grid():
            if a.trainer == "litgpt" and "3.2" in row["model"] and version("litgpt") < "0.5":  # which does not know it
                continue
            if key(row) in done or not re.search(a.only, ",".join(map(str, row.values()))):
                continue
            result = eager_goldens.forked(dict(row), None)
            if result is None:
                print("failed:", row, file=sys.stderr)
            else:
                writer.writerow(result)
                out.flush()


if __name__ == "__main__":
    main()
