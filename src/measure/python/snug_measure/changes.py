"""Advice that is followed without touching the program: words of SNUG_MEASURE_CHANGES become arguments of Trainer's or TRL's configuration, or of
from_pretrained. What was really changed is written down; a program that has no such argument changes nothing."""

import functools
import importlib.util
import os

import snug_measure

WORDS = tuple(word for word in os.environ.get("SNUG_MEASURE_CHANGES", "").split(",") if word)


def _say(word, what):
    snug_measure.say(f"{word}: {what}")
    with open(os.path.join(snug_measure.DIRECTORY, "changed"), "a") as file:
        file.write(word + "\n")


def _put(arguments, word, **values):
    if any(not hasattr(arguments, name) for name in values):
        return
    for name, value in values.items():
        setattr(arguments, name, value)
    _say(word, ", ".join(f"{name}={value!r}" for name, value in values.items()))


def _halve_batch(arguments, word):
    size = arguments.per_device_train_batch_size
    if size > 1:
        _put(arguments, word, per_device_train_batch_size=size // 2, gradient_accumulation_steps=2 * arguments.gradient_accumulation_steps)


def _shorten(arguments, word):
    if getattr(arguments, "max_length", None):
        _put(arguments, word, max_length=arguments.max_length // 2)


def _fuse_loss(arguments, word):
    if importlib.util.find_spec("liger_kernel"):
        _put(arguments, word, use_liger_kernel=True)


OF_ARGUMENTS = {
    "smaller_micro_batch": _halve_batch,
    "shorter_sequences": _shorten,
    "fused_loss": _fuse_loss,
    "gradient_checkpointing": lambda a, word: None if a.gradient_checkpointing else _put(a, word, gradient_checkpointing=True),
    "optimizer_8bit": lambda a, word: _put(a, word, optim="adamw_bnb_8bit"),
    "optimizer_foreach_off": lambda a, word: _put(a, word, optim="adamw_torch_fused"),
    "prediction_loss_only": lambda a, word: _put(a, word, prediction_loss_only=True),
    "eval_accumulation": lambda a, word: _put(a, word, eval_accumulation_steps=1),
    "smaller_eval_batch": lambda a, word: _put(a, word, per_device_eval_batch_size=1),
}
OF_MODELS = {"flash_attention": ("attn_implementation", "sdpa"), "bf16_weights": ("torch_dtype", "bfloat16")}


def prepare_arguments(module):
    """transformers.training_args: SFTConfig and the others call its __post_init__ as well."""
    real = module.TrainingArguments.__post_init__

    @functools.wraps(real)
    def changed(self, *args, **kwargs):
        for word in WORDS:
            if word in OF_ARGUMENTS:
                OF_ARGUMENTS[word](self, word)
        return real(self, *args, **kwargs)

    if any(word in OF_ARGUMENTS for word in WORDS):
        module.TrainingArguments.__post_init__ = changed


def prepare_models(module):
    """transformers.modeling_utils."""
    values = {OF_MODELS[word][0]: OF_MODELS[word][1] for word in WORDS if word in OF_MODELS}
    if not values:
        return
    real = module.PreTrainedModel.from_pretrained.__func__

    @functools.wraps(real)
    def changed(cls, *args, **kwargs):
        import torch
        for word in WORDS:
            if word in OF_MODELS:
                _say(word, "{}={!r}".format(*OF_MODELS[word]))
        return real(cls, *args, **{**kwargs, **{name: getattr(torch, value) if name == "torch_dtype" else value for name, value in values.items()}})

    module.PreTrainedModel.from_pretrained = classmethod(changed)
