"""How a case of each kind is drawn: program, model, settings and card, and in which phases it should run out."""

from dataclasses import dataclass, field

import shapes

GPUS = ("A100-SXM4-80GB", "RTX-3090", "H100-SXM5-80GB", "A10", "RTX-4090", "L4")
PLAIN = dict(steps=3, micro_batch=2, accumulation=1, length=128, dtype="float32", amp=None, attention="sdpa", gradient_checkpointing=False, lora=0,
             quantize_4bit=False, device_map=False, optimizer="adamw", foreach=None, fused_loss=False, fraction=1, max_grad_norm=1.0)


@dataclass
class Draft:
    program: str
    config: dict
    settings: dict
    phases: tuple                                # of probe.py: where memory shall run out
    machine: dict = field(default_factory=dict)
    how: str = "short"                           # which rule chooses the card's memory, of cards.py
    cure: str | None = None                      # where it is not simply that of answers.py
    request_bytes: int | None = None             # what is asked for at once, where that alone is too much


def _loop(rng, programs=("plain_loop", "trainer", "sft")):
    """A trainer, and the libraries it brings."""
    program = rng.choice(programs)
    return program, {"libraries": program not in ("plain_loop",), "synthetic": program == "sft"}


def _amp(rng):
    return rng.choice([dict(dtype="float32", amp=None), dict(dtype="float32", amp="bfloat16"), dict(dtype="float32", amp="float16"),
                       dict(dtype="bfloat16", amp=None)])


def weights(rng):
    config = shapes.draw(rng, (1280, 2048), (12, 24), (16000, 64000))
    settings = {**PLAIN, "lora": 8, "micro_batch": 1, "length": rng.choice([32, 64]), "dtype": rng.choice(["float32", "bfloat16", "float16"]),
                "device_map": rng.random() < 0.5}
    return Draft("plain_loop", config, settings, ("load",))


def load_twice(rng):
    config = shapes.draw(rng, (1024, 1792), (6, 16), (16000, 64000))
    return Draft("load_twice", config, {**PLAIN, "micro_batch": 1, "length": 32, "optimizer": "sgd", "dtype": rng.choice(["float32", "bfloat16"]),
                                        "load_device": "cuda"}, ("load",))


def second_model(rng):
    config = shapes.draw(rng, (768, 1408), (4, 12), (8000, 16000))
    settings = {**PLAIN, "micro_batch": 1, "length": rng.choice([32, 64]), "optimizer": rng.choice(["adamw", "sgd"]), "second_model": True, "foreach": False,
                "lora": rng.choice([0, 8]), "steps": 5,
                "warm_up": rng.choice([1, 2, 3]), "teacher": rng.choice(["copy", "pretrained"])}
    return Draft("distillation", config, settings, ("between",))


def _activations(rng, gradient_checkpointing, programs=("plain_loop", "trainer", "sft")):
    program, machine = _loop(rng, programs)
    config = shapes.draw(rng, (512, 1024), (8, 16), (2048, 4096))
    settings = {**PLAIN, **_amp(rng), "micro_batch": rng.choice([8, 12, 16, 24]), "length": rng.choice([384, 512, 640, 768, 1024]),
                "lora": rng.choice([0, 0, 8, 16]), "gradient_checkpointing": gradient_checkpointing}
    if gradient_checkpointing:
        settings["micro_batch"] *= 4
    return Draft(program, config, {**settings, "steps": 2}, ("forward", "backward"), machine)


def _in_four(draft):
    draft.cure = f"smaller_micro_batch={draft.settings['micro_batch'] // 4}"
    return draft


def activations(rng):
    return _in_four(_activations(rng, rng.random() < 0.5))


def recomputation(rng):
    return _activations(rng, False)


def expandable_too_little(rng):
    draft = _activations(rng, rng.random() < 0.3, ("plain_loop", "trainer"))
    draft.machine["alloc_conf"] = "expandable_segments:True"
    return _in_four(draft)


def logits(rng):
    program, machine = _loop(rng, ("plain_loop", "trainer"))
    config = shapes.draw(rng, (256, 512), (2, 4), (65536, 152064))
    settings = {**PLAIN, **_amp(rng), "micro_batch": rng.choice([2, 4, 6, 8]), "length": rng.choice([384, 512, 768, 1024]), "lora": rng.choice([0, 8])}
    return Draft(program, config, settings, ("forward", "between", "backward"), machine)


def attention(rng):
    program, machine = _loop(rng)
    config = shapes.draw(rng, (512, 1024), (4, 8), (2048, 4096), heads=None)
    settings = {**PLAIN, **_amp(rng), "micro_batch": rng.choice([2, 3, 4]), "length": rng.choice([1536, 2048, 3072]), "attention": "eager"}
    return Draft(program, config, settings, ("forward", "backward"), machine)


def _full(rng, **changes):
    program, machine = _loop(rng, ("plain_loop", "trainer"))
    config = shapes.draw(rng, (1024, 1536), (6, 14), (8000, 16000))
    return Draft(program, config, {**PLAIN, "micro_batch": 1, "length": rng.choice([32, 64, 96]), **changes}, (), machine)


def gradients(rng):
    draft = _full(rng, optimizer=rng.choice(["adamw", "sgd"]), dtype=rng.choice(["float32", "bfloat16"]))
    draft.phases = ("backward",)
    return draft


def optimizer_states(rng):
    draft = _full(rng, dtype=rng.choice(["float32", "bfloat16"]), max_grad_norm=0.0)
    draft.phases, draft.how = ("optimizer",), "states"
    return draft


def optimizer_temporaries(rng):
    draft = _full(rng, dtype=rng.choice(["float32", "bfloat16"]))
    draft.program, draft.machine, draft.phases, draft.how = "plain_loop", {}, ("optimizer",), "temporaries"
    return draft


def buckets(rng):
    config = shapes.draw(rng, (1024, 1408), (6, 12), (8000, 16000))
    settings = {**PLAIN, "micro_batch": 1, "length": 32, "optimizer": "sgd", "gradient_as_bucket_view": False}
    return Draft("ddp", config, settings, ("backward",), {"ranks": 2})


def gathered(rng):
    config = shapes.draw(rng, (1024, 1536), (12, 20), (4096, 8000), families=("llama", "qwen2", "mistral"))
    settings = {**PLAIN, "micro_batch": 1, "length": 32, "optimizer": "sgd", "reshard_after_forward": False, "trained_layers": rng.choice([1, 2])}
    return Draft("fsdp", config, settings, ("forward", "backward"), {"ranks": 2})


def _varied(rng, lengths, usual):
    config = shapes.draw(rng, (512, 896), (6, 12), (2048, 8000))
    settings = {**PLAIN, **rng.choice([dict(dtype="float32", amp=None), dict(dtype="float32", amp="bfloat16"), dict(dtype="bfloat16", amp=None)]),
                "micro_batch": rng.choice([4, 8]), "lengths": lengths, "longest": max(lengths), "usual": usual, "fixed_lengths": False,
                "empty_cache": False, "optimizer": rng.choice(["adamw", "sgd"]), "gradient_checkpointing": False}
    return Draft("varied_lengths", config, settings, ("forward", "backward"))


def long_batch(rng):
    usual = rng.randrange(160, 320, 16)
    lengths = [usual - 16 * rng.randrange(4) for _ in range(rng.randint(4, 8))]
    lengths.insert(rng.randint(3, len(lengths)), usual * rng.randint(4, 6))
    return _varied(rng, lengths, usual)


def growing_lengths(rng):
    first, by = rng.randrange(128, 256, 32), rng.choice([64, 96, 128])
    lengths = [first + by * i for i in range(rng.randint(8, 12))]
    draft = _varied(rng, lengths, lengths[len(lengths) // 3])
    draft.how = "growth"
    return draft


def growing_holes(rng):
    first, by = rng.randrange(256, 512, 32), rng.choice([16, 24, 40, 56])
    lengths = [first + by * i for i in range(rng.randint(10, 16))]
    draft = _varied(rng, lengths, lengths[-1])
    draft.how = "holes"
    return draft


def alternating_sizes(rng):
    one, other = rng.randrange(320, 512, 16), rng.randrange(560, 900, 16)
    draft = _varied(rng, [rng.choice([one, other]) - 8 * rng.randrange(12) for _ in range(rng.randint(12, 20))], other)
    draft.how = "holes"
    return draft


def scattered_blocks(rng):
    width = rng.choice([1024, 2048, 4096])
    piece = rng.randrange(2048, 4097, 256)
    scores = rng.randrange(36, 72, 2) << 20  # bytes of a piece's scores, and of its codes somewhat more than half of them
    settings = {**PLAIN, "width": width, "piece": piece, "queries": scores // 4 // piece, "code": int(scores * rng.uniform(0.55, 0.75)) // 4 // piece,
                "pieces": rng.randint(16, 40), "table": 0, "empty_cache": False}
    settings.update(narrow=64, table=settings["pieces"] * settings["queries"] // 3)
    return Draft("retrieval", None, settings, ("load", "between", "evaluation"), how="holes")


def kept_graphs(rng):
    config = shapes.draw(rng, (384, 768), (4, 10), (2048, 8000))
    settings = {**PLAIN, "micro_batch": rng.choice([2, 4]), "length": rng.choice([128, 256, 384]), "loop": rng.choice(["validate", "accumulate", "train"]),
                "batches": rng.randint(8, 14), "detach_kept": False, "optimizer": rng.choice(["adamw", "sgd"])}
    return Draft("kept_graphs", config, settings, ("forward", "backward"), how="growth")


def kept_outputs(rng):
    config = shapes.draw(rng, (256, 512), (2, 4), (24000, 64000))
    settings = {**PLAIN, "micro_batch": rng.choice([4, 8]), "length": rng.choice([256, 384, 512]), "steps": rng.randint(10, 16), "kept_on": "cuda",
                "optimizer": rng.choice(["adamw", "sgd"])}
    return Draft("kept_outputs", config, settings, ("forward", "backward", "between"), how="growth")


def kept_by_hooks(rng):
    config = shapes.draw(rng, (512, 1024), (6, 12), (2048, 4096))
    settings = {**PLAIN, "micro_batch": rng.choice([8, 12]), "length": rng.choice([384, 512, 768]), "steps": rng.randint(10, 16), "hooks": True,
                "detach_kept": rng.random() < 0.5, "kept_on": "cuda", "optimizer": "sgd"}
    return Draft("kept_by_hooks", config, settings, ("forward", "backward"), how="growth")


def kept_evaluation(rng):
    config = shapes.draw(rng, (256, 512), (2, 4), (16000, 50304))
    batch = rng.choice([2, 4])
    settings = {**PLAIN, "micro_batch": 2, "length": rng.choice([128, 256]), "eval_batch": batch, "eval_rows": batch * rng.randint(12, 24),
                "eval_accumulation": None, "prediction_loss_only": None, "amp": rng.choice([None, "bfloat16"]), "optimizer": rng.choice(["adamw", "sgd"])}
    return Draft("kept_evaluation", config, settings, ("evaluation",), {"libraries": True})


def kept_in_loop(rng):
    config = shapes.draw(rng, (256, 512), (2, 4), (24000, 64000))
    batch = rng.choice([4, 8])
    settings = {**PLAIN, "micro_batch": 1, "length": rng.choice([256, 384]), "eval_batch": batch, "eval_rows": batch * rng.randint(12, 24), "kept_on": "cuda"}
    return Draft("kept_in_loop", config, settings, ("evaluation",), how="growth")


def kv_cache(rng):
    config = shapes.draw(rng, (512, 1024), (12, 20), (2048, 8000), families=("llama", "qwen2", "mistral", "gpt2"))
    rows = rng.choice([16, 32, 48])
    settings = {**PLAIN, "dtype": rng.choice(["float16", "bfloat16"]), "rows": rows, "generated_rows": rows, "length": rng.choice([256, 384, 512]),
                "new_tokens": rng.choice([16, 24, 32])}
    return Draft("generation", config, settings, ("generate",), {"libraries": True})


def merging(rng):
    config = shapes.draw(rng, (1024, 1664), (6, 14), (16000, 32000))
    settings = {**PLAIN, "lora": rng.choice([8, 16]), "micro_batch": 1, "length": 32, "dtype": rng.choice(["float32", "bfloat16"]), "merge_device": "cuda"}
    return Draft("merging", config, settings, ("between", "save"), {"libraries": True})


def saving(rng):
    config = shapes.draw(rng, (1024, 1664), (6, 12), (16000, 32000))
    settings = {**PLAIN, "micro_batch": 1, "length": 32, "steps": 4, "save_at": rng.choice([0, 1, 2]), "save_device": "cuda",
                "how": rng.choice(["clone", "deepcopy"]), "optimizer": rng.choice(["adamw", "sgd"]), "foreach": False}
    return Draft("saving", config, settings, ("between", "save"))


def memory_limit(rng):
    draft = _activations(rng, False, ("plain_loop",))
    draft.settings["fraction"] = round(rng.uniform(0.3, 0.7), 2)
    draft.how = "limit"
    return draft


def other_process(rng):
    draft = _activations(rng, False, ("plain_loop", "trainer"))
    draft.machine.update(listed=rng.random() < 0.7)
    draft.how = "others"
    return draft


def impossible_request(rng):
    config = shapes.draw(rng, (128, 256), (1, 1), (2048, 8000))
    rows, length = rng.choice([(32, 2048), (48, 1536), (64, 1024), (64, 2048), (96, 1024)])
    settings = {**PLAIN, "micro_batch": rows, "length": length, "right_shape": False}
    return Draft("wrong_shape", config, settings, ("between",), request_bytes=4 * (rows * length) ** 2)
