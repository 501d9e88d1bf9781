"""A live trainer of transformers or TRL as the recipe that it is: its model, its arguments and its adapter, in the words of
TrainingArguments and SFTConfig, and the config of its model beside it.

Nothing is loaded, moved or changed; transformers and torch are those of the trainer, and never imported here.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any, Dict, Mapping, Optional, Tuple

from ._answer import objects_of
from ._live_arguments import arguments_of, evaluation_of, ranks_of, versions
from ._live_model import check_model, config_of, method_of, preparation_of, quantization_of, weights_dtype_of
from ._plans import Plan, plan_of
from ._words import Files, flags_of
from .errors import Error

_ATTENTION = ("sdpa", "eager", "flash_attention_2")


@dataclasses.dataclass(frozen=True)
class Live:
    """What a trainer is: its recipe, the config of its model, and what is said beside the recipe as flags."""

    name: str
    config: Mapping[str, Any]
    recipe: Mapping[str, Any]
    flags: Mapping[str, Any]


def check_trainer(kind: type) -> bool:
    """Whether it is TRL's; refuses by name what is not supervised fine-tuning."""
    for base in kind.__mro__:
        package = base.__module__.split(".", 1)[0]
        if package == "trl" and base.__name__ not in ("SFTTrainer", "SFTConfig"):
            raise Error(f"{base.__name__} is not planned: it is not supervised fine-tuning, as SFTTrainer and Trainer are")
        if package == "trl":
            return True
        if package == "transformers" and base.__name__ not in ("Trainer", "TrainingArguments"):
            raise Error(f"{base.__name__} is not planned: SFTTrainer and Trainer are")
        if package == "transformers":
            return False
    raise Error(f"{kind.__name__} is no Trainer of transformers or TRL")


def read_live(
    model: Any,
    args: Any,
    is_trl: bool,
    dataset: Any,
    eval_dataset: Any = None,
    keeps_outputs: bool = False,
    optimizer: Any = None,
) -> Live:
    """A run as a recipe; raises Error for what is not planned, by its name."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    check_model(base)
    attention = getattr(base.config, "_attn_implementation", None) or "sdpa"
    if attention not in _ATTENTION:
        raise Error(f"attention {attention} is not planned: {', '.join(_ATTENTION)} are")
    quantization = quantization_of(base)
    weights = weights_dtype_of(base, bool(quantization))
    method, flags = method_of(model)
    if quantization:
        flags["prepare_model_for_kbit_training"] = preparation_of(base, weights)
    arguments, how = arguments_of(base, args, dataset, optimizer)
    evaluation, outputs = evaluation_of(args, eval_dataset, keeps_outputs)
    recipe: Dict[str, Any] = {"dataset_num_proc": args.dataset_num_proc} if is_trl else {}  # by which it is known as TRL's
    recipe.update(method, torch_dtype=weights, attn_implementation=attention, **quantization)
    recipe.update(arguments, **evaluation)
    flags.update(how, **outputs, **ranks_of(args), stack=",".join(versions()))
    name = (getattr(base.config, "_name_or_path", "") or base.config.model_type).rstrip("/").rpartition("/")[2]
    return Live(name or "model", config_of(base), recipe, flags)


def files_of(live: Live) -> Tuple[Files, str]:
    """The recipe with the model's config beside it, as files; and the recipe's path."""
    files = Files()
    config = files.write(f"{live.name}/config.json", json.dumps(live.config))
    recipe = {"model_name_or_path": config.rpartition("/")[0], **live.recipe}
    return files, files.write("trainer.json", json.dumps(recipe, indent=1, default=str) + "\n")


def plan_live(live: Live, **keys: Any) -> Plan:
    """The plan of a run that was read."""
    files, recipe = files_of(live)
    asked, said, data = objects_of(["plan", recipe, *flags_of({**live.flags, **keys})], files)
    plan = plan_of(data, asked=asked, messages=said.messages)
    if not keys.keys() - {"gpu", "memory"}:  # which would change what is planned
        _hold(plan, live)
    return plan


def _hold(plan: Plan, live: Live) -> None:
    """What PyTorch's side followed must be what the trainer is."""
    setup = plan.pytorch.setup if plan.pytorch is not None else None
    if setup is None:
        return
    recipe = live.recipe
    autocast = "bfloat16" if recipe["bf16"] else "float16" if recipe["fp16"] else None
    bits = "nf" if recipe.get("load_in_4bit") else "int8" if recipe.get("load_in_8bit") else "none"
    pairs = [
        ("method", setup.method, "lora" if recipe["use_peft"] else "full"),
        ("weights", setup.weights, recipe["torch_dtype"]),
        ("autocast", setup.autocast, autocast),
        ("quantization", setup.quantization[: len(bits)], bits),
        ("attention", setup.attention, recipe["attn_implementation"]),
        ("checkpointing", setup.checkpointing != "none", recipe["gradient_checkpointing"]),
        ("batch", setup.batch, recipe["per_device_train_batch_size"]),
        ("accumulation", setup.accumulation, recipe["gradient_accumulation_steps"]),
        ("length", setup.length, recipe["max_length"]),
        ("rank", setup.rank, recipe.get("lora_r")),
    ]
    for name, planned, there in pairs:
        if planned != there:
            raise Error(f"{name} {there} is not planned: the plan would follow {name} {planned}")


def live_device() -> Dict[str, Any]:
    """The card that torch runs on, by its name and its memory; nothing without one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return {}
    card = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {"gpu": card.name, "memory": int(card.total_memory)}


def plan_on(live: Live, gpu: Optional[str], memory: Any, **keys: Any) -> Plan:
    """The plan for a card, by default the one that the trainer runs on."""
    if gpu is not None or memory is not None:
        return plan_live(live, gpu=gpu, memory=memory, **keys)
    device = live_device()
    try:
        return plan_live(live, **device, **keys)
    except Error:
        if "gpu" not in device:
            raise
    return plan_live(live, memory=device["memory"], **keys)  # a card that the catalogue does not know


def from_trainer(
    trainer: Any, *, gpu: Optional[str] = None, memory: Any = None, max_length: Optional[int] = None, **keys: Any
) -> Plan:
    """Will this trainer fit? The plan of a live ``transformers.Trainer`` or ``trl.SFTTrainer``, before ``train()``.

    Read are the model (config, dtypes of its parameters, quantization), the training arguments, the adapter, and how many
    rows are evaluated; the answer is the plan of the recipe that says the same. ``gpu`` is a card of ``snug.gpus()``, by
    default the one that torch sees; ``memory`` a budget (``"24GiB"``, or a number of bytes). Rows are as long as SFTConfig's
    ``max_length``, else as the longest of the training data; ``max_length`` says otherwise, in tokens. Other keys are those
    of ``snug.plan``.

    Raises ``snug.Error`` for trainers that are not supervised fine-tuning, and for what is not planned, by its name.
    """
    is_trl = check_trainer(type(trainer))
    live = read_live(
        trainer.model,
        trainer.args,
        is_trl,
        trainer.train_dataset if max_length is None else [{"input_ids": [0] * max_length}],
        trainer.eval_dataset,
        trainer.compute_metrics is not None,
        trainer.optimizer,
    )
    if max_length is not None:
        live = dataclasses.replace(live, recipe={**live.recipe, "max_length": max_length})
    return plan_on(live, gpu, memory, **keys)
