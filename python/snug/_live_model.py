"""What a live model is, in the words of a recipe: its config, the dtype and quantization of its weights, its adapter."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .errors import Error


def value_of(word: Any) -> Any:
    """An enum of transformers or peft as its word."""
    return getattr(word, "value", word)


def _dtype(of: Any) -> str:
    return str(of).replace("torch.", "")


def check_model(base: Any) -> None:
    name = type(base).__name__
    if not name.endswith(("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")):
        raise Error(f"{name} is not planned: language models with their head are, such as LlamaForCausalLM")


def _is_float(parameter: Any) -> bool:
    return bool(parameter.dtype.is_floating_point)


def _bytes_by_dtype(parameters: Iterator[Any]) -> Dict[str, int]:
    held: Dict[str, int] = {}
    for parameter in parameters:
        if _is_float(parameter):
            held[_dtype(parameter.dtype)] = held.get(_dtype(parameter.dtype), 0) + parameter.numel() * parameter.element_size()
    return held


def weights_dtype_of(base: Any, quantized: bool) -> str:
    """The dtype that the weights were loaded in; of quantized ones what the config says, for others may have been widened."""
    said = getattr(base.config, "dtype", None) or getattr(base.config, "torch_dtype", None)
    if quantized:
        return _dtype(said or "float32")
    held = _bytes_by_dtype(parameter for name, parameter in base.named_parameters() if not _is_adapter(name))
    most = max(held, key=lambda dtype: held[dtype])
    if held[most] < 0.99 * sum(held.values()):
        raise Error(f"weights in {' and '.join(sorted(held))} are not planned: load them in one dtype")
    return most


def _is_adapter(name: str) -> bool:
    return ".lora_" in name or ".modules_to_save." in name


def quantization_of(base: Any) -> Dict[str, Any]:
    """Keys of weights that bitsandbytes quantized; none if they are not."""
    config = getattr(base.config, "quantization_config", None)
    if config is None:
        return {}
    said = config if isinstance(config, dict) else config.to_dict()
    method = value_of(said.get("quant_method"))
    if method != "bitsandbytes":
        raise Error(f"weights quantized by {method} are not planned: those of bitsandbytes are")
    if said.get("load_in_8bit"):
        return {"load_in_8bit": True}
    keys: Dict[str, Any] = {"load_in_4bit": True, "bnb_4bit_use_double_quant": bool(said.get("bnb_4bit_use_double_quant"))}
    for name in ("bnb_4bit_quant_type", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage"):
        keys[name] = _dtype(said[name])
    return keys


def preparation_of(base: Any, weights: str) -> Optional[str]:
    """What was done to the other weights of a quantized model, where that is not what a recipe of these trainers means
    anyway, peft's widening: nothing (false), or but for the norms they were narrowed again, as TRL did (trl)."""
    others = [each for name, each in base.named_parameters() if _is_float(each) and not _is_adapter(name)]
    norms = {_dtype(each.dtype) for each in others if each.dim() == 1}
    rest = {_dtype(each.dtype) for each in others if each.dim() > 1}
    if weights == "float32" or norms != {"float32"}:
        return "false"
    return None if rest <= {"float32"} else "trl"


def config_of(base: Any) -> Dict[str, Any]:
    config: Dict[str, Any] = json.loads(base.config.to_json_string(use_diff=False))
    config["architectures"] = [type(base).__name__]
    if not getattr(getattr(base, "hf_quantizer", None), "pre_quantized", False):
        config.pop("quantization_config", None)  # the recipe quantizes what it loads
    return config


# --- The adapter


def _adapter(model: Any) -> Tuple[Optional[str], Any]:
    """Name and configuration of the one adapter; nothing where there is none."""
    there = getattr(model, "peft_config", None)
    if not there:
        return None, None
    if len(there) > 1:
        raise Error(f"several adapters are not planned: {', '.join(there)}")
    name, config = next(iter(there.items()))
    if value_of(config.peft_type) != "LORA":
        raise Error(f"adapters of kind {value_of(config.peft_type)} are not planned: LORA is")
    return name, config


def _targets(model: Any, adapter: str) -> List[str]:
    """The last names of the modules that have an adapter, each in all layers."""
    modules: Dict[str, int] = {}
    adapted: Dict[str, int] = {}
    for name, module in model.named_modules():
        leaf = name.rpartition(".")[2]
        modules[leaf] = modules.get(leaf, 0) + 1
        if adapter in getattr(module, "lora_A", ()) or adapter in getattr(module, "lora_embedding_A", ()):
            adapted[leaf] = adapted.get(leaf, 0) + 1
    some = sorted(leaf for leaf, count in adapted.items() if count != modules[leaf])
    if some:
        raise Error(f"adapters on some of the modules {', '.join(some)} alone are not planned")
    return sorted(adapted)


def method_of(model: Any) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Keys of the recipe, and flags for what its trainer has no word for."""
    adapter, config = _adapter(model)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    if adapter is None:
        frozen = sum(1 for parameter in model.parameters() if not parameter.requires_grad)
        if frozen:
            raise Error(f"{frozen} weights are frozen and there is no adapter, which is not planned")
        return {"use_peft": False}, {}
    bare = [name for name in trained if not _is_adapter(name)]
    if bare:
        raise Error(f"weights trained beside the adapter are not planned: {bare[0]} …; name their module in modules_to_save")
    keys = {
        "use_peft": True,
        "lora_r": config.r,
        "lora_alpha": config.lora_alpha,
        "lora_dropout": config.lora_dropout,
        "lora_target_modules": _targets(model, adapter),
        "use_rslora": bool(config.use_rslora),
        "use_dora": bool(config.use_dora),
    }
    if config.modules_to_save:
        keys["lora_modules_to_save"] = sorted(config.modules_to_save)
    if getattr(config, "target_parameters", None):
        keys["lora_target_parameters"] = sorted(config.target_parameters)
    if config.bias != "none":
        keys["lora_bias"] = config.bias
    return keys, {"rank_pattern": config.rank_pattern or None}
