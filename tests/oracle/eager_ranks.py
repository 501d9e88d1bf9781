"""One rank of a job of several, for eager_goldens.py: its process group answers at once, since tensors on a null device hold nothing
that could be exchanged; what the rank allocates is what it would allocate among others. Sharding is asked for as users of
transformers' Trainer ask for it."""
import os

# none: the job is a single process; ddp; fsdp2 and fsdp2_grad (reshard_after_forward off); zero1, zero2, zero3: DeepSpeed's stages,
# zero1_overlap and zero2_overlap with overlap_comm and a bucket of 2e8, zero3_init with the model built under deepspeed.zero.Init
SETTINGS = dict(sharding="ddp", ranks=2, rank_number=0)


def join(row):
    """Before anything asks for a process group: this process is rank `rank_number` of `ranks`."""
    os.environ.update(WORLD_SIZE=str(row["ranks"]), RANK=str(row["rank_number"]), LOCAL_RANK="0", LOCAL_WORLD_SIZE=str(row["ranks"]),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    import torch
    import torch.distributed as dist
    import torch.testing._internal.distributed.fake_pg  # noqa: F401, registers the backend

    class Store(dist.Store):
        """Every other rank has been here."""
        held = {}

        def set(self, key, value):
            self.held[key] = value

        def get(self, key):
            return self.held.get(key, b"\1" * 128)  # an identity of NCCL's, which only its size is asked of

        def add(self, key, number):
            return row["ranks"]

        def wait(self, *_):
            pass

        def check(self, *_):
            return True
    global store  # torch 2.4 forgets what Python's part of it does unless somebody holds it
    store = Store()
    torch.cuda.set_device(0)
    dist.init_process_group("nccl" if row["sharding"] == "ddp" else "fake", store=store, rank=row["rank_number"], world_size=row["ranks"])
    for module in (dist, dist.utils, dist.distributed_c10d, torch.nn.parallel.distributed):
        for name in ("_verify_params_across_processes", "_verify_param_shape_across_processes"):
            if hasattr(module, name):
                setattr(module, name, lambda *_, **__: None)
    for name in ("all_gather_object", "gather_object"):  # objects of other ranks are like this one's
        def alike(into, item, *_, **__):
            if into is not None:
                into[:] = [item] * len(into)
        setattr(dist, name, alike)
        setattr(dist.distributed_c10d, name, alike)
    for module in (dist, dist.distributed_c10d):
        module.broadcast_object_list = lambda *_, **__: None


def options(row):
    """What TrainingArguments are told."""
    kind = row["sharding"]
    if kind == "ddp" and row["checkpointing"] == "reentrant":  # which fails with True, Trainer's choice for models of peft
        return dict(ddp_find_unused_parameters=False)
    if kind.startswith("fsdp1"):
        config = dict(use_orig_params=not kind.endswith("flat"), backward_prefetch="no_prefetch" if kind.endswith("still") else "backward_pre")
        strategy = "shard_grad_op" if kind.endswith("grad") else "full_shard"
        os.environ["FSDP_SHARDING_STRATEGY"] = strategy.upper()  # as accelerate's launcher sets it; today's plugin hears nothing else
        import transformers
        if int(transformers.__version__.split(".")[0]) < 5:
            return dict(fsdp=strategy + " auto_wrap", fsdp_config=config)
        return dict(fsdp=True, fsdp_config=dict(config, version=1, reshard_after_forward=strategy.upper()))
    if kind.startswith("fsdp2"):
        return dict(fsdp=True, fsdp_config=dict(version=2, reshard_after_forward=kind == "fsdp2"))
    if kind.startswith("zero"):
        zero = dict(stage=int(kind[4]))
        if kind.endswith("overlap"):
            zero.update(overlap_comm=True, reduce_bucket_size=200_000_000)
        auto = "auto"
        if zero["stage"] == 3:  # transformers' documentation writes these three as "auto"
            zero.update(reduce_bucket_size=auto, stage3_prefetch_bucket_size=auto, stage3_param_persistence_threshold=auto)
        precision = dict(bf16=dict(enabled=auto), fp16=dict(enabled=auto))
        return dict(deepspeed=dict(zero_optimization=zero, gradient_accumulation_steps=auto, gradient_clipping=auto,
                                   train_batch_size=auto, train_micro_batch_size_per_gpu=auto, **precision))
    return {}


def grid(settings, new):
    """Ways to share a run, around a few models; `new`: FSDP 2 and DeepSpeed of today's stack too."""
    small = [("TinyLlama/TinyLlama-1.1B-Chat-v1.0", 6), ("Qwen/Qwen2.5-0.5B", 6), ("meta-llama/Llama-3.2-1B", 4), ("google/gemma-2b", 4)]
    rows = []

    def add(**change):
        rows.append(settings | SETTINGS | change)

    for model, layers in small:
        at = dict(model=model, layers=layers)
        full = dict(at, method="full", seq=256)
        add(**at, sharding="ddp")
        add(**at, sharding="ddp", checkpointing="none", ranks=8)
        add(**at, sharding="ddp", checkpointing="non_reentrant", amp="bf16", targets="all-linear", accum=2)
        add(**full, sharding="ddp", amp="bf16", weights="float32", checkpointing="non_reentrant", ranks=4)
        add(**full, sharding="ddp", checkpointing="none", accum=3)
        if "gpt2" not in model:
            add(**at, sharding="ddp", quant="nf4-double", prep="peft", amp="bf16", targets="all-linear", optim="paged_adamw_8bit", ranks=4)
        mixed = dict(amp="bf16", weights="bfloat16")
        add(**full, **mixed, sharding="fsdp1", checkpointing="non_reentrant")
        add(**full, **mixed, sharding="fsdp1_flat", checkpointing="reentrant", ranks=4)
        add(**full, **mixed, sharding="fsdp1_grad", checkpointing="none", ranks=8)
        add(**at, **mixed, sharding="fsdp1", checkpointing="non_reentrant", ranks=4)
        add(**at, **mixed, sharding="fsdp1_flat", checkpointing="reentrant")
        if not new:
            continue
        for kind in ("fsdp2", "zero1", "zero2", "zero3"):
            add(**full, **mixed, sharding=kind, checkpointing="non_reentrant")
            add(**full, **mixed, sharding=kind, checkpointing="none", ranks=8)
        for kind in ("zero1_overlap", "zero2_overlap"):
            add(**full, **mixed, sharding=kind, checkpointing="non_reentrant", ranks=4, accum=2)
        for kind in ("fsdp2", "zero2", "zero3"):
            add(**at, **mixed, sharding=kind, checkpointing="non_reentrant")
        add(**at, **mixed, sharding="zero3", checkpointing="none", ranks=8, targets="all-linear")
        add(**full, **mixed, sharding="fsdp2", checkpointing="reentrant", ranks=4)
        add(**full, **mixed, sharding="fsdp2_grad", checkpointing="non_reentrant", ranks=4)
        add(**full, sharding="fsdp2", checkpointing="none", ranks=4)
        four_bit = dict(at, **mixed, checkpointing="non_reentrant", targets="all-linear")
        add(**four_bit, sharding="zero2", quant="nf4-double", prep="peft", ranks=4)
        add(**four_bit, sharding="fsdp2", quant="nf4-double-bf16", ranks=4)
    at = dict(model=small[0][0], layers=6, amp="bf16", weights="bfloat16")
    # as many blocks as it takes for what hooks of FSDP 1 hold to outgrow the logits
    add(**dict(at, model="meta-llama/Llama-2-7b-hf", layers=0), sharding="fsdp1", checkpointing="reentrant", seq=1024)
    for model, layers in (small[0], small[1]):
        of = dict(at, model=model, layers=layers, checkpointing="non_reentrant")
        add(**of, method="full", sharding="fsdp1_flat", ranks=3, rank_number=2, seq=256)
        add(**of, method="full", sharding="fsdp1", ranks=3, seq=256, accum=3)
        add(**dict(of, checkpointing="none"), method="full", sharding="fsdp1_still", accum=2, seq=256)
        add(**dict(of, amp="none"), method="full", sharding="fsdp1", ranks=4, seq=256)
        add(**dict(of, weights="float32"), method="full", sharding="fsdp1", ranks=4, seq=256)
        add(**dict(of, checkpointing="none"), sharding="fsdp1", ranks=8, targets="all-linear", dropout="0.1")
        add(**dict(of, checkpointing="reentrant"), sharding="fsdp1", targets="all-linear")
        add(**dict(of, checkpointing="none"), sharding="fsdp1_still", accum=2)
        add(**dict(of, checkpointing="reentrant"), sharding="fsdp1_flat", quant="nf4-double-bf16", ranks=2, dropout="0.1")
        add(**dict(of, checkpointing="none"), sharding="fsdp1", quant="nf4-double-bf16", targets="all-linear", ranks=4)
    if not new:
        return rows
    for number in (0, 2):
        add(**at, method="full", sharding="fsdp2", checkpointing="non_reentrant", ranks=3, rank_number=number)
        add(**at, method="full", sharding="zero3", checkpointing="non_reentrant", ranks=3, rank_number=number)
    for kind in ("fsdp2", "zero2", "zero3"):
        add(**at, method="full", sharding=kind, checkpointing="non_reentrant", accum=2, ranks=4)
        add(**at, sharding=kind, checkpointing="non_reentrant", ranks=4, targets="all-linear")
        add(**dict(at, weights="float32"), method="full", sharding=kind, checkpointing="none", ranks=4)
    for kind, packed in (("zero2", ""), ("fsdp2", "-bf16")):
        at = dict(model=small[1][0], layers=6, sharding=kind, **mixed)
        add(**at, quant="nf4-double" + packed, checkpointing="none", ranks=8)
        add(**at, quant="nf4" + packed, prep="peft", checkpointing="reentrant", targets="all-linear", dropout="0.05", accum=2)
    for kind in ("fsdp2_grad", "fsdp2"):
        add(**dict(at, sharding=kind), quant="nf4-double-bf16", prep="peft", checkpointing="non_reentrant", targets="all-linear", ranks=8)
    add(**at, quant="nf4-double", prep="peft", checkpointing="non_reentrant", targets="all-linear", ranks=4)
    # large vocabularies of an untied head, as people share big models: adapters on all linears, many micro-batches
    at = dict(model="Qwen/Qwen2.5-7B", layers=4, sharding="zero3_init", ranks=4, **mixed)
    adapters = dict(at, targets="all-linear", rank=64, dropout="0.05", batch=1)
    for seq in (256, 1024, 4096):
        add(**adapters, seq=seq, accum=8, checkpointing="reentrant")
    add(**adapters, seq=1024, checkpointing="non_reentrant")
    add(**dict(adapters, layers=12), seq=512, accum=2, checkpointing="reentrant")
    add(**at, method="full", seq=512, checkpointing="non_reentrant")
    add(**dict(at, model="meta-llama/Llama-3.2-1B", ranks=2), seq=512, checkpointing="none")
    add(**dict(at, model="meta-llama/Llama-3.2-1B", ranks=8), method="full", seq=512, accum=2, checkpointing="reentrant")
    # gated delta rules; FSDP fails by itself: accelerate looks for vision blocks that the text model lacks
    for model in ("Qwen/Qwen3.5-0.8B", "Qwen/Qwen3.5-4B"):
        at = dict(model=model, layers=4, seq=300, **mixed)
        add(**at, sharding="ddp", ranks=4, checkpointing="none")
        add(**at, sharding="ddp", ranks=4, quant="nf4-double", prep="peft", targets="all-linear", checkpointing="non_reentrant")
        for kind in ("zero2", "zero3"):
            add(**at, method="full", sharding=kind, ranks=4, checkpointing="non_reentrant")
    # DeepSpeed on one device
    for model, layers in (small[0], small[1]):
        at = dict(model=model, layers=layers, ranks=1, seq=256, **mixed)
        add(**at, method="full", sharding="zero3_init", checkpointing="reentrant", accum=4)
        add(**at, method="full", sharding="zero3_init", checkpointing="none")
        add(**at, sharding="zero3_init", checkpointing="reentrant", targets="all-linear", rank=64)
        add(**at, method="full", sharding="zero2", checkpointing="non_reentrant")
        add(**at, sharding="zero2", checkpointing="none")
        add(**at, sharding="zero2_overlap", checkpointing="reentrant", targets="all-linear", accum=8)
    return rows
