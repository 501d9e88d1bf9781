"""What live TrainingArguments are, in the words of a recipe: what of them touches memory."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

from ._live_model import value_of
from .errors import Error

# Arguments that go into the recipe where they are set to something: they touch memory, or the program says that they do.
_IF_SET = (
    "activation_offloading",
    "auto_find_batch_size",
    "label_smoothing_factor",
    "loss_type",
    "max_steps",
    "neftune_noise_alpha",
    "optim_args",
    "optim_target_modules",
    "packing",
    "padding_free",
    "parallelism_config",
    "torch_compile",
    "use_liger_kernel",
)
_STACK = ("torch", "transformers", "peft", "bitsandbytes", "trl")


def _checkpointing(base: Any, args: Any) -> Tuple[bool, Optional[str]]:
    """Whether blocks are recomputed, and how where that is said."""
    asked = any(getattr(args, name, False) for name in ("activation_checkpointing", "gradient_checkpointing"))
    name = "is_activation_checkpointing" if hasattr(type(base), "is_activation_checkpointing") else "is_gradient_checkpointing"
    how: Mapping[str, Any] = {}
    for name_of_words in ("activation_checkpointing_kwargs", "gradient_checkpointing_kwargs"):
        how = how or getattr(args, name_of_words, None) or {}
    reentrant = how.get("use_reentrant")
    words = None if reentrant is None else f"use_reentrant={'true' if reentrant else 'false'}"
    return bool(asked or getattr(base, name, False)), words


def _longest(dataset: Any) -> int:
    """Tokens of the longest row of a dataset that was tokenized."""
    try:
        columns = getattr(dataset, "column_names", None)
        rows = dataset["input_ids"] if columns is not None else [dataset[index]["input_ids"] for index in range(len(dataset))]
        return max(len(row) for row in rows)
    except (KeyError, TypeError, IndexError, ValueError):
        raise Error("the length of the rows is not known: give max_length, in tokens") from None


def _length(base: Any, args: Any, dataset: Any) -> int:
    """As SFTConfig has it, within the model's positions, else of the longest row."""
    said = getattr(args, "max_length", None) or getattr(args, "max_seq_length", None)
    positions = getattr(base.config, "max_position_embeddings", None)
    return _longest(dataset) if not said else int(said) if positions is None else min(int(said), int(positions))


def _optimizer(args: Any, optimizer: Any) -> str:
    """Its word; refuses one that was made elsewhere."""
    made = getattr(optimizer, "optimizer", optimizer)  # within accelerate's
    transformers = sys.modules["transformers"]
    if made is not None:
        try:
            asked = transformers.Trainer.get_optimizer_cls_and_kwargs(args)[0]
        except Exception:  # one that needs the model to be told
            asked = type(made)
        if not isinstance(made, asked):
            raise Error(f"the optimizer {type(made).__name__} is not that of optim {value_of(args.optim)}: it is not planned")
    return str(value_of(args.optim))


def arguments_of(base: Any, args: Any, dataset: Any, optimizer: Any) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    checkpointing, how = _checkpointing(base, args)
    keys = {
        "per_device_train_batch_size": args.per_device_train_batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "optim": _optimizer(args, optimizer),
        "bf16": bool(args.bf16),
        "fp16": bool(args.fp16),
        "max_grad_norm": args.max_grad_norm,
        "gradient_checkpointing": checkpointing,
        "max_length": _length(base, args, dataset),
    }
    for name in _IF_SET:
        value = value_of(getattr(args, name, None))
        if value not in (None, False, 0, -1, "", [], {}):
            keys[name] = value
    return keys, {"gradient_checkpointing_kwargs": how}


def _rows(dataset: Any) -> Optional[int]:
    if isinstance(dataset, dict):
        return max((_rows(each) or 0 for each in dataset.values()), default=0) or None
    return len(dataset) or None if hasattr(dataset, "__len__") else None


def evaluation_of(args: Any, dataset: Any, keeps_outputs: bool) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    strategy = value_of(getattr(args, "eval_strategy", "no"))
    if strategy == "no":
        return {}, {}
    keys = {"eval_strategy": strategy, "per_device_eval_batch_size": args.per_device_eval_batch_size}
    if args.eval_accumulation_steps:
        keys["eval_accumulation_steps"] = args.eval_accumulation_steps
    rows = None if dataset is None else _rows(dataset)
    return keys, {"eval_rows": rows, "compute_metrics": (keeps_outputs and rows is not None) or None}


def ranks_of(args: Any) -> Dict[str, Any]:
    """Flags for what several processes share."""
    if args.n_gpu > 1:
        raise Error(f"torch.nn.DataParallel over {args.n_gpu} GPUs is not planned: start the run with torchrun")
    if getattr(args, "fsdp", None):
        raise Error("FSDP of a live trainer is not planned: snug.plan plans its recipe, with gpus and fsdp")
    deepspeed = getattr(args, "deepspeed", None)
    if isinstance(deepspeed, dict):
        raise Error("a DeepSpeed configuration in Python is not planned: give TrainingArguments its file")
    if args.world_size == 1:
        return {}
    return {"gpus": args.world_size, "deepspeed": deepspeed, "ddp": None if deepspeed else True}


def versions() -> Iterator[str]:
    for name in _STACK:
        try:
            yield f"{name}={importlib.metadata.version(name).partition('+')[0]}"
        except importlib.metadata.PackageNotFoundError:
            continue
