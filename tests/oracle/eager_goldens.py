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
import argparse, collections, csv, gc, importlib, json, os, pathlib, re, signal, statistics, sys, tempfile, time, traceback, types

import eager_card
import eager_evaluation
import eager_experts
import eager_grids
import eager_ranks
from eager_grids import SAVED, SETTINGS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
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
        mask = torch.ones_like(ids)
        if ON_A_CARD:
            ids = torch.randint(1000, 30000, (T,))
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
    if "fla" in sys.modules:
        row["fla"] = sys.modules["fla"].__version__
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
    ask = set() if row["padded"] else {"_flash_attention_forward", "flash_attention_mask", "_ignore_causal_mask_sdpa", "find_packed_sequence_indices", "create_recurrent_attention_mask"}
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
                decoder = config.get("text_config", config)
                for key in ("num_hidden_layers", "n_layer"):
                    if key in decoder:
                        decoder[key] = row["layers"]
                if "layer_types" in decoder:
                    decoder["layer_types"] = decoder["layer_types"][:row["layers"]]
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
        eager_card.give_values(model, torch)
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
    p.add_argument("--fla", action="store_true", help="in place of the grid rows with flash-linear-attention's kernels, which must be installed")
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
    results = RESULTS + (["evaluate"] if a.evaluation else []) + (["fla"] if a.fla else [])
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
                else eager_ranks.grid(SETTINGS, version >= (5, 0)) if a.ranks else eager_evaluation.grid(SETTINGS) if a.evaluation else eager_grids.sample(a.sample, a.seed, version) if a.sample
                else eager_grids.saved() if a.saved else eager_experts.grid(SETTINGS) if a.experts else eager_grids.hybrids() if a.fla else eager_grids.families(version) if a.families else eager_grids.liger(version) if a.liger else eager_grids.grid(version))
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
