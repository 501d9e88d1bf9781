"""The Python side of `snug measure`: what a program on a null device needs done in its own process.

`watch` arranges for one function to run right after each library has been imported; nothing is imported on its own account, so a
process that does not use PyTorch pays nothing."""

import importlib.abc
import importlib.util
import os
import sys
import time

BEGAN = time.time()
DIRECTORY = os.environ.get("SNUG_MEASURE_DIR", "")
SYNTHETIC = os.environ.get("SNUG_MEASURE_SYNTHETIC") == "1"


def say(text):
    """One line to the person who measures; only from the first rank."""
    if os.environ.get("RANK", "0") == "0":
        print(f"snug measure: {text}", file=sys.stderr, flush=True)


def _after_torch(module):
    from snug_measure import device, phases, processes
    device.prepare(module)
    processes.prepare(module)
    phases.begin(module)


def _after_models(module):
    from snug_measure import changes, weights
    weights.prepare(module)
    changes.prepare_models(module)


def _after_arguments(module):
    from snug_measure import changes
    changes.prepare_arguments(module)


def _after_flash_utilities(module):
    from snug_measure import device
    device.prepare_flash_utilities(module)


def _after_tokenizers(module):
    from snug_measure import synthetic
    synthetic.prepare_tokenizers(module)


def _after_configurations(module):
    from snug_measure import synthetic
    synthetic.prepare_configurations(module)


def _after_datasets(module):
    from snug_measure import synthetic
    synthetic.prepare_datasets(module)


def _after_trainer(module):
    from snug_measure import phases
    phases.prepare_trainer(module)


def _after_checkpoint(module):
    from snug_measure import values
    values.prepare_checkpoint(module)


def _after_generation(module):
    from snug_measure import values
    values.prepare_generation(module)


def _after_triton(module):
    from snug_measure import device
    device.prepare_triton(module)


AFTER = {
    "torch": _after_torch,
    "torch.utils.checkpoint": _after_checkpoint,
    "triton.runtime.jit": _after_triton,
    "triton.runtime.autotuner": _after_triton,
    "transformers.modeling_utils": _after_models,
    "transformers.modeling_flash_attention_utils": _after_flash_utilities,
    "transformers.generation.utils": _after_generation,
    "transformers.trainer": _after_trainer,
    "transformers.training_args": _after_arguments,
    **({"transformers.models.auto.tokenization_auto": _after_tokenizers,
        "transformers.configuration_utils": _after_configurations,
        "datasets.load": _after_datasets} if SYNTHETIC else {}),
}


class _Loader(importlib.abc.Loader):
    """A module's own loader, and what is to be done after it."""

    def __init__(self, loader, name):
        self.loader, self.name = loader, name

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        AFTER[self.name](module)

    def __getattr__(self, name):
        return getattr(self.loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name not in AFTER:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader, name)
                return spec
        return None


def _asks_for_flash_attention():
    """True if the command line, or a script or recipe that it names, speaks of flash attention."""
    for word in getattr(sys, "orig_argv", sys.argv)[1:]:
        if "flash_att" in word:
            return True
        if word.endswith((".py", ".yaml", ".yml", ".json", ".toml")) and os.path.isfile(word) and os.path.getsize(word) < 1 << 20:
            with open(word, errors="replace") as file:
                if "flash_att" in file.read():
                    return True
    return False


def watch():
    sys.meta_path.insert(0, _Finder())
    if _asks_for_flash_attention() and importlib.util.find_spec("flash_attn") is None:
        sys.path.append(os.path.join(DIRECTORY, "python", "flash"))
