#!/usr/bin/env python3
"""Goldens of the eager model: PyTorch's own peaks on a null device.

Runs a grid of fine-tuning runs with the real torch, transformers' Trainer, peft and bitsandbytes, each in a process forked after the
imports, and writes one line a run: its settings, then what PyTorch's allocator counted. A null device must be preloaded, so that no
card is needed: run it as `snug measure -- python3 tests/oracle/eager_goldens.py`, or name a folder that holds such a library
(libsnug_null_device.so, beside it libcuda.so.1) with --null-device. Models are those of src/model/models.txt.

  eager_goldens.py --null-device DIR --out tests/golden/eager.csv        the grid for the installed versions; other versions' lines stay
  eager_goldens.py --null-device DIR --families --out tests/golden/eager_families.csv                        other families
  eager_goldens.py --null-device DIR --evaluation --out tests/golden/eager_evaluation.csv                     with evaluations between steps
  eager_goldens.py --null-device DIR --row model=gpt2,batch=4 --trace t.jsonl       one run, with every event of the allocator
"""
import argparse, collections, csv, gc, importlib, json, os, pathlib, random, re, signal, statistics, sys, tempfile, time, traceback, types

import eager_card
import eager_evaluation
import eager_experts
import eager_ranks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SETTINGS = dict(model="meta-llama/Llama-3.2-1B", layers=0, method="lora", dora=0, targets="q_proj:k_proj:v_proj:o_proj", rank=16, dropout="0",
                quant="none", prep="none", weights="bfloat16", amp="none", attention="sdpa", checkpointing="reentrant",
                optim="adamw_torch", batch=2, seq=512, accum=1, padded=0, loss="stock", sm=80)
SAVED = dict(saved="")  # modules_to_save
ON_A_CARD = False  # a real one: everything runs as it is, so weights have values (scripts/measure_torch.py)
RESULTS = ["torch", "transformers", "peft", "bitsandbytes", "static", "allocated", "phase", "reserved", "steady", "forward", "backward", "optimizer"]


def run(row, trace=None):
    """One fine-tuning run; returns the row with its results."""
    os.environ["NULL_CUDA_SM"] = os.environ["SNUG_NULL_SM"] = str(row["sm"])
    import torch
    import transformers
    cuda = torch.cuda
    if "ranks" in row:
        eager_ranks.join(row)
    patch(torch, row)
    evaluates = row.get("eval_rows", 0) > 0
    if trace:
        cuda.memory._record_memory_history(context=None, max_entries=10**9)
    peaks, marks = collections.defaultdict(lambda: [0, 0]), []

    def mark(name):
        s = cuda.memory_stats()
        if marks:
            peak = peaks[marks[-1][1]]
            peak[:] = max(peak[0], s["allocated_bytes.all.peak"]), max(peak[1], s["reserved_bytes.all.peak"])
        cuda.reset_peak_memory_stats()
        marks.append((s.get("allocation.all.allocated", 0), name))

    mark("load")
    options = arguments(row)
    first = row.get("sharding") == "zero3_init"  # then from_pretrained knows of DeepSpeed (deepspeed.zero.Init)
    training = transformers.TrainingArguments(**options) if first else None
    model = build(row, torch)

    class Trainer(transformers.Trainer):
        """The stock Trainer; what is overridden only notes where a phase begins."""
        def training_step(self, *x, **k):
            mark("forward")
            out = super().training_step(*x, **k)
            mark("between steps")
            return out

        def evaluation_loop(self, *x, **k):
            mark("evaluate")
            out = super().evaluation_loop(*x, **k)
            mark("between steps")
            return out

        def create_accelerator_and_postprocess(self):
            super().create_accelerator_and_postprocess()
            back = self.accelerator.backward

            def backward(*x, **k):
                mark("backward")
                back(*x, **k)
            self.accelerator.backward = backward

        def create_optimizer(self, *x, **k):
            optimizer = super().create_optimizer(*x, **k)
            optimizer.register_step_pre_hook(lambda *z: mark("optimizer"))
            optimizer.register_step_post_hook(lambda *z: mark("between steps"))
            return optimizer

    steady = []

    clock = []

    class End(transformers.TrainerCallback):
        def on_step_end(self, *x, **k):
            if "steps" in row:
                cuda.synchronize()
                clock.append(time.perf_counter())

        def on_train_end(self, *x, **k):
            steady.append(cuda.memory_allocated())

    steps, B, T = row.get("steps", 2), row["batch"], row["seq"]
    ids = torch.zeros(T, dtype=torch.long)
    data = []
    for i in range(B * row["accum"] * steps * row.get("ranks", 1)):
        mask = ids + 1
        if row["padded"] and i % B == B - 1:
            mask[T // 2:] = 0
        data.append(dict(input_ids=ids, attention_mask=mask, labels=ids))
    more = {}
    if evaluates:
        more = dict(eval_dataset=eager_evaluation.data(row, torch), compute_metrics=(lambda _: {}) if row["metrics"] else None)
    trainer = Trainer(callbacks=[End()], model=model, args=training or transformers.TrainingArguments(**options), train_dataset=data, **more)
    gc.collect()
    cuda.empty_cache()
    mark("train begin")
    row["static"] = cuda.memory_allocated()
    trainer.train()
    gc.collect()
    mark("end")
    peaks.pop("load")
    name, peak = max(peaks.items(), key=lambda kv: kv[1][0])
    row.update({m: sys.modules[m].__version__.split("+")[0] if m in sys.modules else "" for m in RESULTS[:4]})
    row.update(allocated=peak[0], phase=name, reserved=max(v[1] for v in peaks.values()), steady=steady[0])
    row.update({p: peaks[p][0] for p in ("forward", "backward", "optimizer")})
    if evaluates:
        row["evaluate"] = peaks["evaluate"][0]
    if len(clock) > 2:
        row["seconds"] = statistics.median(b - a for a, b in zip(clock[1:], clock[2:]))
    if ON_A_CARD:
        row.update(eager_card.device_bytes(torch))
    if trace:
        write_trace(trace, cuda.memory._snapshot()["device_traces"][0], marks)
    return row


def arguments(row):
    """What TrainingArguments are told."""
    check = row["checkpointing"]
    options = dict(output_dir=os.path.join(tempfile.gettempdir(), "eager-goldens"), per_device_train_batch_size=row["batch"],
                   gradient_accumulation_steps=row["accum"], max_steps=row.get("steps", 2), report_to=[], optim=row["optim"], save_strategy="no", logging_steps=10,
                   warmup_steps=10, disable_tqdm=True, bf16=row["amp"] == "bf16", fp16=row["amp"] == "fp16", gradient_checkpointing=check != "none",
                   gradient_checkpointing_kwargs=None if check == "none" else {"use_reentrant": check == "reentrant"})
    if row["loss"] == "liger":
        options["use_liger_kernel"] = True
    if "ranks" in row:
        options.update(eager_ranks.options(row))
    if row.get("eval_rows", 0) > 0:
        options.update(eager_evaluation.options(row))
    return options


def patch(torch, row):
    """Answers questions about values as real rows would (nothing is padded unless asked for), drops initialisation and Triton's launches."""
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, lambda t, *x, **k: t)
    if ON_A_CARD:
        if row.get("cudnn") == "off":
            torch.backends.cuda.enable_cudnn_sdp(False)
        return
    ask = set() if row["padded"] else {"_flash_attention_forward", "flash_attention_mask", "_ignore_causal_mask_sdpa", "find_packed_sequence_indices"}
    real = torch.Tensor.__bool__
    torch.Tensor.__bool__ = lambda t: (t.is_cuda and sys._getframe(1).f_code.co_name in ask) or real(t)
    if hasattr(torch.backends.cuda, "enable_cudnn_sdp"):
        torch.backends.cuda.enable_cudnn_sdp(False)
    import transformers.modeling_flash_attention_utils as flash
    if hasattr(flash, "_is_packed_sequence"):
        flash._is_packed_sequence = lambda *x: False
    from triton.runtime import autotuner, jit
    jit.JITFunction.run = autotuner.Autotuner.run = autotuner.Heuristics.run = lambda *x, **k: None


def configuration(row):
    for line in (ROOT / "src/model/models.txt").read_text().splitlines():
        names, brace, text = line.partition("{")
        if row["model"] in names.split() and not line.startswith("#"):
            config = json.loads(brace + text)
            if row["layers"]:
                for key in ("num_hidden_layers", "n_layer"):
                    if key in config:
                        config[key] = row["layers"]
                if "layer_types" in config:
                    config["layer_types"] = config["layer_types"][:row["layers"]]
            return config
    raise SystemExit(f"no model {row['model']}")


def build(row, torch):
    """The model on cuda:0, in the order in which users' scripts build it."""
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
    raw = configuration(row)
    config = AutoConfig.for_model(raw.pop("model_type"), **raw)
    config.use_cache = bool(row.get("cache", 0))
    dtype = getattr(torch, row["weights"])
    for name in ("init_weights", "initialize_weights", "_initialize_weights"):
        if hasattr(PreTrainedModel, name):
            setattr(PreTrainedModel, name, (lambda s, *x, **k: s.tie_weights()) if name == "init_weights" else (lambda s, *x, **k: None))
    attention = {"flash": "flash_attention_2"}.get(row["attention"], row["attention"])
    model = AutoModelForCausalLM.from_config(config, torch_dtype=dtype, attn_implementation=attention)
    if ON_A_CARD:
        eager_card.give_values(model)
        importlib.reload(torch.nn.init)  # adapters are initialised as always
    if row["quant"] != "none":
        quantize(row, torch, model, dtype)
    if row.get("sharding", "none") in ("none", "ddp"):  # else whoever shares it out moves its parts
        torch.nn.Module.to(model, "cuda:0")
    model.tie_weights()
    if row["method"] == "full":
        return model
    import peft
    if row["quant"] != "none" and row["prep"] != "none":
        model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=row["checkpointing"] != "none")
    else:
        model.requires_grad_(False)
        model.enable_input_require_grads()
    targets = "all-linear" if row["targets"] == "all-linear" else row["targets"].split(":")
    model = peft.get_peft_model(model, peft.LoraConfig(r=row["rank"], lora_alpha=row["rank"], lora_dropout=float(row["dropout"]),
                                                       target_modules=targets, use_dora=bool(row["dora"]), task_type="CAUSAL_LM",
                                                       modules_to_save=row["saved"].split(":") if row.get("saved") else None))
    if row["prep"] == "trl":  # trl's peft_module_casting_to_bf16
        for name, module in model.named_modules():
            if "norm" not in name and re.search("lm_head|embed_tokens|wte|wpe", name) and hasattr(module, "weight"):
                module.to(torch.bfloat16)
    return model


def quantize(row, torch, model, dtype):
    """What from_pretrained does with a BitsAndBytesConfig: tensors come in the order of a safetensors file."""
    import bitsandbytes as bnb
    storage = torch.bfloat16 if row["quant"].endswith("bf16") else torch.uint8
    for name in sorted(k for k, _ in model.named_parameters()):
        path, _, leaf = name.rpartition(".")
        module = model.get_submodule(path)
        linear = isinstance(module, torch.nn.Linear) and module is not model.get_output_embeddings()
        if not linear or leaf != "weight":
            getattr(module, leaf).data = getattr(module, leaf).data.to("cuda:0")
            continue
        size = module.in_features, module.out_features
        if row["quant"] == "int8":
            new = bnb.nn.Linear8bitLt(*size, False, has_fp16_weights=False, threshold=6.0, device="meta")
            new.weight = bnb.nn.Int8Params(module.weight.data, requires_grad=False, has_fp16_weights=False).to("cuda:0")
        else:
            form = dict(quant_type="nf4", compress_statistics=row["quant"].startswith("nf4-double"), quant_storage=storage)
            new = bnb.nn.Linear4bit(*size, False, compute_dtype=dtype, device="meta", **form)
            new.weight = bnb.nn.Params4bit(module.weight.data, requires_grad=False, module=new, **form).to("cuda:0")
        new.bias = module.bias
        parent, _, child = path.rpartition(".")
        setattr(model.get_submodule(parent), child, new)
    if row["quant"] == "int8":
        model.is_loaded_in_8bit = True
    else:
        model.is_loaded_in_4bit = True
    model.is_quantized = True
    model.hf_quantizer = types.SimpleNamespace(is_trainable=True, is_qat_trainable=False,
                                               quantization_config=types.SimpleNamespace(bnb_4bit_quant_storage=storage))
    model.quantization_method = "bitsandbytes"
    model.to = lambda *x, **k: model


def write_trace(path, events, marks):
    """One line an event, oldest first: action, address, requested bytes, and for allocations the phase."""
    count, at = 0, 0
    with open(path, "w") as out:
        for e in events:
            line = dict(action=e["action"], addr=e.get("addr", e.get("device_free")), size=e["size"], stream=e["stream"])
            if e["action"] == "alloc":
                while at + 1 < len(marks) and marks[at + 1][0] <= count:
                    at += 1
                line["phase"] = marks[at][1]
                count += 1
            out.write(json.dumps(line) + "\n")


def forked(row, trace, seconds=0):
    """`run` in a process of its own, of so many seconds at most (0: any); None, with the reason on stderr, where it fails."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(seconds)
        try:
            sys.stdout = open(os.devnull, "w")
            os.write(write, json.dumps(run(row, trace)).encode())
        except BaseException:
            sys.stderr.write(traceback.format_exc())
        os._exit(0)
    os.close(write)
    text = b""
    while part := os.read(read, 65536):
        text += part
    os.close(read)
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def enter(folder):
    """Executes this script again with the null device preloaded."""
    library = next(f for f in ("libsnug_null_device.so", "libnullcuda.so") if os.path.exists(f"{folder}/{f}"))
    env = dict(os.environ, LD_PRELOAD=f"{folder}/{library}", SNUG_NULL_MULTIPROCESSORS="108", SNUG_NULL_MEMORY="84442873856", LD_LIBRARY_PATH=f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}",
               PYTHONPATH=f"{folder}:{os.environ.get('PYTHONPATH', '')}", SNUG_NULL_DEVICE="1", HF_HUB_OFFLINE="1",
               NULL_CUDA_SMS="108", NULL_CUDA_BYTES="84442873856",
               TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore", BITSANDBYTES_NOWELCOME="1")
    os.execve(sys.executable, [sys.executable, *sys.argv], env)


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
LATER_FAMILIES = [("allenai/Olmo-3-1025-7B", 4), ("HuggingFaceTB/SmolLM3-3B", 8), ("zai-org/GLM-4-9B-0414", 2), ("ByteDance-Seed/Seed-OSS-36B-Base", 2)]


def families(transformers_version):
    """A few ways to train each of them."""
    rows = []
    for model, layers in FAMILIES + (LATER_FAMILIES if transformers_version >= (4, 57) else []):
        at = dict(model=model, layers=layers)
        for change in (dict(), dict(method="full", seq=256), dict(targets="all-linear", dropout="0.05", batch=1, seq=1024), dict(checkpointing="none"),
                       dict(checkpointing="non_reentrant", amp="bf16"), dict(method="full", amp="bf16", weights="float32", seq=256),
                       dict(attention="eager", amp="bf16"), dict(amp="bf16", checkpointing="none", batch=1),
                       dict(amp="bf16", quant="nf4-double", prep="peft", targets="all-linear"), dict(weights="float16", amp="bf16", checkpointing="none")):
            rows.append(dict(SETTINGS, **at, **change))
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


def libraries():
    """torch and transformers, imported once for all children; no device is opened before the fork."""
    import torch
    real = {n: getattr(torch.cuda, n) for n in ("get_device_capability", "is_available", "device_count", "is_bf16_supported")}
    answers = dict(get_device_capability=(8, 0), is_available=True, device_count=1, is_bf16_supported=True)
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *x, answer=answer, **k: answer)
    import torch.utils._triton as triton
    asked, triton.has_triton = triton.has_triton, lambda: True
    import bitsandbytes, peft, transformers  # noqa: E401, F401
    from transformers import Trainer, AutoModelForCausalLM  # noqa: F401
    import transformers.models.llama.modeling_llama  # noqa: F401
    for name, function in real.items():
        setattr(torch.cuda, name, function)
    triton.has_triton = asked
    assert not torch.cuda.is_initialized()
    return torch, transformers


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--null-device", help="folder of the library to preload")
    p.add_argument("--out", help="eager.csv of tests/golden, or eager_ranks.csv")
    p.add_argument("--ranks", action="store_true", help="the grid of one rank among others")
    p.add_argument("--evaluation", action="store_true", help="the grid of runs that evaluate; with --ranks of one rank among others")
    p.add_argument("--row", help="one run: setting=value,…")
    p.add_argument("--trace", help="with --row: every event of the allocator, as JSON lines")
    p.add_argument("--sample", type=int, default=0, help="in place of the grid so many random rows")
    p.add_argument("--families", action="store_true", help="in place of the grid a few rows of each of the other families")
    p.add_argument("--experts", action="store_true", help="in place of the grid rows of mixtures of experts; with --ranks of one rank among others")
    p.add_argument("--liger", action="store_true", help="in place of the grid rows with Liger's kernels, which must be installed")
    p.add_argument("--saved", action="store_true", help="in place of the grid rows with modules_to_save")
    p.add_argument("--like", help="in place of the grid the rows of this table, of a card or of installed versions")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", default="", help="rows whose settings, joined by commas, match this pattern")
    a = p.parse_args()
    if "SNUG_NULL_DEVICE" not in os.environ and a.null_device:
        enter(a.null_device)
    torch, transformers = libraries()
    if a.row:
        known = SETTINGS | (eager_ranks.SETTINGS if "ranks=" in a.row else {}) | (eager_evaluation.SETTINGS if "eval_" in a.row else {}) | (SAVED if "saved=" in a.row else {})
        row = dict(known, **{k: type(known[k])(v) for k, v in (x.split("=", 1) for x in a.row.split(","))})
        print(json.dumps(forked(row, a.trace)))
        return
    stack = (torch.__version__.split("+")[0], transformers.__version__)
    known = SETTINGS | (eager_ranks.SETTINGS if a.ranks else {}) | (eager_evaluation.SETTINGS if a.evaluation else SAVED if a.saved else {})
    results = RESULTS + (["evaluate"] if a.evaluation else [])
    if a.like:
        like = list(csv.DictReader(open(a.like)))
        kinds = SETTINGS | eager_ranks.SETTINGS | eager_card.SETTINGS
        known = {k: kinds[k] for k in like[0] if k in kinds}
        results = RESULTS + [k for k in like[0] if k == "evaluate"]
        like = [{k: type(v)(r[k]) for k, v in known.items()} for r in like if "card" in r or (r["torch"], r["transformers"]) == stack]
    path = pathlib.Path(a.out or ROOT / "tests/golden" / ("eager_ranks.csv" if a.ranks else "eager.csv"))
    old = list(csv.DictReader(path.open())) if path.exists() else []
    key = lambda r: tuple(str(r[k]) for k in known)  # noqa: E731
    done = {key(r) for r in old if (r["torch"], r["transformers"]) == stack}
    fresh = not old
    with path.open("a", newline="") as out:
        writer = csv.DictWriter(out, [*known, *results], extrasaction="ignore", lineterminator="\n")
        if fresh:
            writer.writeheader()
        version = tuple(int(x) for x in transformers.__version__.split(".")[:2])
        rows = (like if a.like else eager_evaluation.ranks_grid(SETTINGS | eager_ranks.SETTINGS) if a.ranks and a.evaluation else eager_experts.ranks_grid(SETTINGS | eager_ranks.SETTINGS) if a.ranks and a.experts
                else eager_ranks.grid(SETTINGS, version >= (5, 0)) if a.ranks else eager_evaluation.grid(SETTINGS) if a.evaluation else sample(a.sample, a.seed, version) if a.sample
                else saved() if a.saved else eager_experts.grid(SETTINGS) if a.experts else families(version) if a.families else liger(version) if a.liger else grid(version))
        for row in rows:
            if key(row) in done or not re.search(a.only, ",".join(map(str, row.values()))):
                continue
            result = forked(dict(row), None)
            if result is None:
                print("failed:", row, file=sys.stderr)
            else:
                writer.writerow(result)
                out.flush()


if __name__ == "__main__":
    main()
