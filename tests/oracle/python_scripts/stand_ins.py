"""Values that stand for anything, and those that keep what they are made with: in place of every module that is not Python's own. What
transformers, peft, trl and unsloth are called with is kept; all else answers with a value that stands for anything."""

import dataclasses
import importlib.abc
import importlib.machinery
import inspect
import sys
import types

class Blank:
    """What a class that is made of a stand-in inherits."""

    def __init__(self, *a, **k):
        pass

    def __init_subclass__(cls, **k):
        pass


class Anything:
    """A value of which nothing is known; whatever is done with it gives another."""

    def __init__(self, name="", *a, **k):
        self.__dict__["_name"] = name if isinstance(name, str) else ""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return known(name) or Anything(name)

    def __setattr__(self, name, value):
        self.__dict__[name] = value

    def __call__(self, *a, **k):
        if self._name in ("map", "apply", "filter") and a and callable(a[0]):  # a function that is applied to rows
            try:
                a[0](Anything())
            except Exception:
                pass
        return Anything()

    def __mro_entries__(self, bases):
        return (Blank,)

    def __iter__(self):
        return iter((Anything(),))

    def __format__(self, form):
        return "anything"

    def __str__(self):
        return "anything"

    __repr__ = __str__

    def __fspath__(self):
        return "anything"

    def __len__(self):
        return 1000

    def __bool__(self):
        return True

    def __hash__(self):
        return id(self)

    def __contains__(self, key):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *a):
        return False

    def __getitem__(self, key):
        return Anything()

    def __setitem__(self, key, value):
        pass


for sign in ("eq ne add sub mul truediv floordiv mod pow radd rsub rmul rtruediv rfloordiv rmod rpow neg pos abs invert and or xor lt gt le ge "
             "matmul rmatmul lshift rshift").split():
    setattr(Anything, f"__{sign}__", lambda self, *a: Anything())


class Dtype(Anything):
    def __str__(self):
        return self._name

    __repr__ = __str__


class Recorded(Anything):
    """An object that was made with these arguments."""

    def __init__(self, *a, **k):
        self.__dict__.update(_name=type(self).__name__, _args=a, _kwargs=k)

    def _given(self, key, place=None):
        """The argument of this name or place; ABSENT where there is none. Of a data class made of it, its field."""
        if key in self.__dict__.get("_kwargs", {}):
            return self._kwargs[key]
        if place is not None and place < len(self.__dict__.get("_args", ())):
            return self._args[place]
        return self.__dict__.get(key, ABSENT)

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        kwargs = self.__dict__.get("_kwargs", {})
        return kwargs[name] if name in kwargs else Anything(name)


ABSENT = object()
TRAINERS, LENGTHS = [], []


class Settings(Recorded):
    pass


class Adapter(Recorded):
    pass


class Quantization(Recorded):
    pass


class Trainer(Recorded):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        TRAINERS.append(self)


class Model(Recorded):
    """A model that was loaded; it stays itself, whatever is done with it."""

    SAME = {"to", "cuda", "half", "float", "bfloat16", "train", "eval", "merge_and_unload", "requires_grad_"}

    def __getattr__(self, name):
        if name in self.SAME:
            return lambda *a, **k: self
        if name == "add_adapter":
            return lambda *a, **k: adapt(self, *a, **k)
        return super().__getattr__(name)


class Tokenizer(Anything):
    def __call__(self, *a, **k):
        if isinstance(k.get("max_length"), int):
            LENGTHS.append(k["max_length"])
        return Anything()

    def __getattr__(self, name):
        if name in ("__call__", "encode", "encode_plus", "batch_encode_plus"):
            return self
        if name == "apply_chat_template":
            return self
        return super().__getattr__(name)


def adapt(model, *a, **k):
    config = next((x for x in (*a, *k.values()) if isinstance(x, Adapter)), None)
    if config is None:  # of which nothing is known
        config = Adapter(r=Anything(), lora_alpha=Anything(), target_modules=Anything())
    if isinstance(model, Model):
        model.__dict__["adapter"] = config
    return model


def prepared(model=None, *a, **k):
    return model if model is not None else Anything()


class Loader:
    """AutoModelForCausalLM, LlamaForCausalLM, FastLanguageModel, AutoTokenizer, PeftModel …"""

    def __init__(self, name):
        self._name = name
        self.fast = name.startswith("Fast") and "Tokenizer" not in name

    def from_pretrained(self, *a, **k):
        if "Tokenizer" in self._name or "Processor" in self._name:
            return Tokenizer()
        if "Peft" in self._name:
            model = a[0] if a else k.get("model", Anything())
            if isinstance(model, Model):
                model.__dict__["adapter"] = Adapter()
            return model
        if "Config" in self._name:
            return Anything()
        model = Model(*a, **k)
        model.__dict__.update(fast=self.fast, adapter=None)
        return (model, Tokenizer()) if self.fast else model

    from_config = from_pretrained

    def get_peft_model(self, model=None, *a, **k):
        adapter = Adapter(*a, **k)
        adapter.__dict__["fast"] = True
        return adapt(model, adapter)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name)

    def __call__(self, *a, **k):
        return Anything()

    def __mro_entries__(self, bases):
        return (Blank,)


class ArgumentParser:
    """transformers' and trl's: data classes with their defaults, nothing from the command line."""

    def __init__(self, types_=(), *a, **k):
        self.types = types_ if isinstance(types_, (tuple, list)) else (types_,)

    def parse_args_into_dataclasses(self, *a, **k):
        return tuple(with_defaults(x) for x in self.types)

    parse_args_and_config = parse_json_file = parse_yaml_file = parse_dict = parse_args_into_dataclasses


def with_defaults(kind):
    if not isinstance(kind, type):
        return Anything()
    made = object.__new__(kind)
    if isinstance(made, Recorded):
        made.__dict__.update(_args=(), _kwargs={}, outside=True)
    for field in getattr(kind, "__dataclass_fields__", {}).values():
        value = field.default
        if value is dataclasses.MISSING:
            value = field.default_factory() if field.default_factory is not dataclasses.MISSING else Anything()
        object.__setattr__(made, field.name, value) if not isinstance(made, Anything) else made.__dict__.update({field.name: value})
    return made


def fire(function=None, *a, **k):
    """Python Fire: the function with its own defaults."""
    if callable(function) and not isinstance(function, Anything):
        needed = [p for p in inspect.signature(function).parameters.values()
                  if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        return function(**{p.name: Anything() for p in needed})
    return Anything()


DTYPES = {"float16", "bfloat16", "float32", "half", "float", "float64"}
CONFIGS = {"SFTConfig", "DPOConfig", "ORPOConfig", "KTOConfig", "CPOConfig", "GRPOConfig", "RewardConfig", "GKDConfig", "PPOConfig"}


def known(name):
    """The stand-in of what matters here, wherever it is imported from; None for the rest."""
    if name in DTYPES:
        return Dtype({"half": "float16", "float": "float32"}.get(name, name))
    if name.endswith("TrainingArguments") or name in CONFIGS:
        return MADE.setdefault(name, type(name, (Settings,), {}))
    if name in ("LoraConfig", "AdaLoraConfig"):
        return Adapter
    if name == "BitsAndBytesConfig":
        return Quantization
    if name.endswith("Trainer"):
        return MADE.setdefault(name, type(name, (Trainer,), {}))
    if name == "get_peft_model":
        return adapt
    if name.startswith("prepare_model"):  # peft's for k bits, accelerate's
        return prepared
    if name in ("HfArgumentParser", "TrlParser"):
        return ArgumentParser
    if name == "Fire":
        return fire
    if name in ("is_available", "is_bf16_supported", "is_bfloat16_supported", "is_torch_bf16_gpu_available"):
        return lambda *a, **k: True
    if name in ("device_count", "world_size", "get_world_size", "num_processes"):
        return lambda *a, **k: 1
    if name == "get_device_capability":
        return lambda *a, **k: (9, 0)
    if (name[:1].isupper() and any(part in name for part in ("Model", "ForCausalLM", "ForConditionalGeneration", "Tokenizer", "Processor"))
            and not name.endswith(("Output", "Config", "Info", "Card", "Args", "Arguments", "Checkpoint"))):
        return Loader(name)
    return None


MADE = {}


class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            if name == "__version__":
                return "9.9.9"
            raise AttributeError(name)
        value = known(name) or Anything(name)
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every module that is not Python's own, and those of the script's own repository, are stand-ins."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []
        if module.__name__ == "transformers":
            module.__all__ = ["AutoModelForCausalLM", "AutoTokenizer", "BitsAndBytesConfig", "Trainer", "TrainingArguments"]
