#!/usr/bin/env python3
"""Python scripts and notebooks that train, executed with libraries that only record, beside what snug reads in their text.

    python3 tests/oracle/python_scripts.py [--snug SNUG] FILE|FOLDER …   # a line a script, then the share that is right
    python3 tests/oracle/python_scripts.py --record FILE                 # what the execution gave, as JSON

Nothing of a script is known here beforehand: every module that is not Python's own is a stand-in. What transformers, peft, trl and
unsloth are called with is kept; all else answers with a value that stands for anything. A statement that fails leaves such a value
in the names that it binds, and the next one runs. Scripts are other people's: an audit hook refuses processes, sockets, native code
and writing outside the run's own folder, and time, memory and the size of files are bounded. Run it without a network all the same.

What the first trainer is given is the truth. A question is left out where the execution does not answer it ("?"), or where the answer
is a default that differs between a library's versions."""

import argparse
import ast
import dataclasses
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import types

SECONDS, MEMORY = 60, 4 << 30
QUESTIONS = ("model", "method", "bits", "batch", "accumulation", "length", "rank", "alpha", "targets", "dtype", "half")


# ---- Stand-ins

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
    import inspect
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


# ---- The script

class EachByItself(ast.NodeTransformer):
    """Wraps statements, so that one that fails binds stand-ins and the next one runs."""

    KEEP = {"dataclass", "dataclasses", "staticmethod", "classmethod", "property", "contextmanager", "contextlib", "field"}

    def wrap(self, node):
        targets = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        names = sorted({x.id for target in targets for x in ast.walk(target)
                        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)})
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = sorted({(alias.asname or alias.name).split(".")[0] for alias in node.names if alias.name != "*"})
        body = [ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Name("__anything__", ast.Load()), [], []))
                for name in names] or [ast.Pass()]
        tried = ast.Try([node], [ast.ExceptHandler(ast.Name("__failures__", ast.Load()), None, body)], [], [])
        for made in ast.walk(tried):
            if not hasattr(made, "lineno") and "lineno" in made._attributes:
                ast.copy_location(made, node)
        return tried

    def visit_body(self, body):
        out = []
        for node in body:
            node = self.visit(node)
            simple = isinstance(node, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom,
                                       ast.Delete, ast.With, ast.For, ast.While, ast.If, ast.Try, ast.ClassDef))
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if isinstance(node, ast.AnnAssign) and node.value is None:
                simple = False
            out.append(self.wrap(node) if simple and not future else node)
        return out

    def generic_visit(self, node):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self.visit_body(value))
            elif isinstance(value, list):
                setattr(node, field, [self.visit(x) if isinstance(x, ast.AST) else x for x in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node

    def _decorated(self, node):
        node.decorator_list = [d for d in node.decorator_list
                               if (n := d.func if isinstance(d, ast.Call) else d) and
                               (n.id if isinstance(n, ast.Name) else n.value.id if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
                                else "") in self.KEEP]
        return node

    def visit_FunctionDef(self, node):
        return self.generic_visit(self._decorated(node))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        node = self._decorated(node)
        node.body = [self.visit(x) for x in node.body]
        return node


def code_of(path):
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)
    cells = cells.get("cells") or [c for sheet in cells.get("worksheets", []) for c in sheet["cells"]]
    out = []
    for cell in cells:
        if cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        source = source if isinstance(source, str) else "".join(source)
        if source.lstrip().startswith("%%"):
            continue
        lines = []
        for line in source.split("\n"):
            bare = line.lstrip()
            lines.append(line[:len(line) - len(bare)] + "pass" if bare.startswith(("!", "%")) or bare.endswith("?") and "#" not in bare else line)
        cell_text = "\n".join(lines)
        try:
            ast.parse(cell_text)
        except SyntaxError:
            continue
        out.append(cell_text)
    return "\n".join(out)


def open_arguments():
    """argparse whose required options stand for anything."""
    plain_add, plain_parse = argparse.ArgumentParser.add_argument, argparse.ArgumentParser.parse_known_args

    def add(self, *names, **k):
        if names and not str(names[0]).startswith("-"):
            k.setdefault("nargs", "?")
            if k["nargs"] == "?":
                k.setdefault("default", Anything())
        if k.pop("required", False):
            k.setdefault("default", Anything())
        return plain_add(self, *names, **k)

    argparse._ActionsContainer.add_argument, held = add, argparse._ActionsContainer.add_argument
    plain_add = held
    argparse.ArgumentParser.parse_known_args = lambda self, args=None, namespace=None: plain_parse(self, [], namespace)


def fence(folder):
    """No processes, no network, nothing written outside `folder`."""
    forbidden = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "ctypes.", "os.remove",
                 "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate", "shutil.", "pty.", "webbrowser.",
                 "urllib.", "http.", "ftplib.", "smtplib.", "signal.")

    def hook(event, args):
        if event.startswith(forbidden):
            raise PermissionError(event)
        if event == "open" and args and not isinstance(args[0], int):
            mode, flags = args[1] or "", args[2] or 0
            writes = any(c in str(mode) for c in "wax+") or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and not os.path.realpath(os.fsdecode(args[0])).startswith(folder):
                raise PermissionError(str(args[0]))
        if event == "os.mkdir" and not os.path.realpath(os.fsdecode(args[0])).startswith(folder):
            raise PermissionError(event)

    sys.addaudithook(hook)


def execute(path):
    source = code_of(path)
    tree = EachByItself()
    module = ast.parse(source)
    module.body = tree.visit_body(module.body)
    compiled = compile(ast.fix_missing_locations(module), path.name, "exec")
    for kind, bound in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, 1 << 20)):
        resource.setrlimit(kind, (bound, bound))
    folder = os.path.realpath(tempfile.mkdtemp())
    os.chdir(folder)
    open_arguments()
    for name in [n for n in sys.modules if n.split(".")[0] not in sys.stdlib_module_names and n != "__main__"]:
        del sys.modules[name]
    sys.meta_path.insert(0, Finder())
    sys.argv = [path.name]
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.stdin = open(os.devnull)
    import builtins
    builtins.input = lambda *a: ""
    import getpass
    getpass.getpass = lambda *a, **k: ""
    sys.exit = lambda *a: (_ for _ in ()).throw(RuntimeError("exit"))
    import time
    time.sleep = lambda *a: None
    names = {"__name__": "__main__", "__file__": str(path), "__anything__": Anything, "__failures__": (Exception, SystemExit),
             "display": Anything(), "get_ipython": Anything()}
    fence(folder)
    try:
        exec(compiled, names)
    except BaseException:
        pass


# ---- What it was given

def plain(value):
    """A value as JSON; "?" of what the execution does not know."""
    if isinstance(value, Dtype):
        return value._name
    if value is ABSENT or value is None or isinstance(value, (bool, int, float, str)):
        return None if value is ABSENT else value
    if isinstance(value, (list, tuple, set)):
        return [plain(x) for x in value]
    return "?"


def answers():
    trainer = TRAINERS[0]
    settings = trainer._given("args", 1)
    model = trainer._given("model", 0)
    held = settings if isinstance(settings, Settings) else Settings()
    out = {"trainer": type(trainer).__name__, "settings": type(held).__name__ if held is settings else "?"}
    init = next((x for x in (held._given("model_init_kwargs"), trainer._given("model_init_kwargs")) if isinstance(x, dict)), {})
    if isinstance(model, str):
        model = Model(model, **init)
        model.__dict__.update(fast=False, adapter=None)
    if not isinstance(model, Model):
        out["model"] = "?"
        model = None
    else:
        out["model"] = plain(next((x for x in (model._given("model_name"), model._given("pretrained_model_name_or_path"), *model._args)
                                   if x is not ABSENT), "?"))
    adapter = trainer._given("peft_config")
    if not isinstance(adapter, Adapter):
        adapter = "?" if isinstance(adapter, Anything) else model.adapter if model else "?"
    full = bool(model and model._given("full_finetuning") is True)
    out["method"] = "?" if isinstance(adapter, str) else "full" if adapter is None or full else "lora"
    if model:
        quantization = model._given("quantization_config")
        four, eight = model._given("load_in_4bit"), model._given("load_in_8bit")
        if isinstance(quantization, Quantization):
            four, eight = quantization._given("load_in_4bit"), quantization._given("load_in_8bit")
        elif quantization is not ABSENT and quantization is not None:
            four = "?"
        elif four is ABSENT and model.fast and not full and eight is not True:
            four = True
        out["bits"] = "?" if four == "?" or isinstance(four, Anything) or isinstance(eight, Anything) else 4 if four is True else 8 if eight is True else 16
        for key in ("torch_dtype", "dtype"):
            if model._given(key) is not ABSENT:
                out["dtype"] = plain(model._given(key))
    for key, name in (("batch", "per_device_train_batch_size"), ("accumulation", "gradient_accumulation_steps")):
        if held._given(name) is not ABSENT:
            out[key] = plain(held._given(name))
    for source in (held, trainer, *([model] if model and model.fast else ())):
        for name in ("max_length", "max_seq_length"):
            if "length" not in out and source._given(name) not in (ABSENT, None):
                out["length"] = plain(source._given(name))
    if "length" not in out and LENGTHS:
        out["length"], out["length_of_rows"] = max(LENGTHS), True
    if isinstance(adapter, Adapter) and out["method"] == "lora":
        fast = adapter.__dict__.get("fast", False)
        for key, name, default in (("rank", "r", 16 if fast else 8), ("alpha", "lora_alpha", 16 if fast else 8)):
            value = adapter._given(name)
            out[key] = default if value is ABSENT else plain(value)
        value = adapter._given("target_modules")
        if value not in (ABSENT, None):
            out["targets"] = sorted(value) if isinstance(value, (list, tuple, set)) and all(isinstance(x, str) for x in value) else plain(value)
    out["half"] = next((name for name in ("bf16", "fp16") if held._given(name) is True), "?")
    if held.__dict__.get("outside"):
        out["outside"] = True
    return out


def record(path):
    stdout = os.dup(1)
    try:
        execute(path)
        result = answers() if TRAINERS else {"none": "no trainer was made"}
    except (SyntaxError, ValueError, RecursionError) as error:
        result = {"none": f"{type(error).__name__}: {error}"}
    os.write(stdout, json.dumps(result).encode())
    os._exit(0)


# ---- Beside snug

def planned(snug, *words):
    run = subprocess.run([snug, "plan", *words, "--gpu", "H200", "--json"], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "HF_HOME": "/nonexistent"})
    try:
        return json.loads(run.stdout), run.stderr
    except ValueError:
        return None, run.stderr


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def of_snug(snug, path):
    """What snug reads. Where it has no plan, for want of the model or of its step, all but the model with another in its place."""
    plan, told = planned(snug, str(path))
    own = without = None
    if plan is None:
        without = told.strip().split("\n")[-1]
    elif "recipe" not in plan:  # parameters are known, the step is not
        own = plan["model"]["name"]
    if plan is None or own:
        plan, _ = planned(snug, str(path), "meta-llama/Llama-3.1-8B")
    if plan is None:
        return {"none": without, "told": told}
    recipe, keys = plan["recipe"], {key["ours"]: key for key in plan["file"]["keys"] if key["ours"]}
    targets = recipe["lora_target_modules"]
    found = {"method": recipe["method"].replace("qlora", "lora"),
             "bits": 4 if recipe["load_in_4bit"] == "true" else 8 if recipe["load_in_8bit"] == "true" else 16,
             "targets": targets if targets in ("all-linear", "auto") else sorted(x.strip() for x in targets.split(",")),
             "half": "bf16" if recipe["bf16"] == "true" else "fp16" if recipe["fp16"] == "true" else "no", "told": told}
    for question, key in (("batch", "per_device_train_batch_size"), ("accumulation", "gradient_accumulation_steps"), ("length", "max_length"),
                          ("rank", "lora_r"), ("alpha", "lora_alpha")):
        found[question] = number(recipe[key])
    if own:
        found["model"] = keys.get("model", {}).get("value", own)
    elif without is None:
        found |= {"model": keys.get("model", {}).get("value", plan["model"]["name"]), "dtype": recipe["precision"]["weights"]}
    else:
        found["without"] = without
    return found


# Words by which snug says that it does not know, of each question.
TOLD = {"model": ("model",), "method": ("use_peft",), "bits": ("load_in_4bit", "load_in_8bit", "quantiz"), "batch": ("per_device_train_batch_size",),
        "accumulation": ("gradient_accumulation_steps",), "length": ("max_length", "max_seq_length", "length"), "rank": ("lora_r",),
        "alpha": ("lora_alpha",), "targets": ("lora_target_modules",), "dtype": ("dtype",), "half": ("bf16", "fp16")}


def judged(question, truth, ours):
    """"right", "told" (snug says that it does not know), "wrong"; "" where the execution has no answer."""
    want = truth.get(question)
    if want in (None, "?", "") or (isinstance(want, list) and "?" in want):
        return ""
    if question == "dtype" and (want == "auto" or truth.get("bits") != 16):
        return ""
    told = [line for line in ours.get("told", "").split("\n") if "only Python knows" in line or "not known" in line or "passes over" in line]
    is_told = any(word in line for word in TOLD[question] + ("the trainer's settings",) for line in told)
    if question not in ours:
        return "told" if is_told else "none"
    got = ours[question]
    if isinstance(want, str) and question == "targets" and want != "all-linear":
        want = [want]
    if question == "dtype":
        want = str(want).removeprefix("torch.")
    return "right" if got == want else "told" if is_told else "wrong"


def compare(paths, snug, verbose):
    scripts = sorted(p for path in paths for p in ([path] if path.is_file() else path.rglob("*")) if p.suffix in (".py", ".ipynb"))
    counts = {question: {"right": 0, "told": 0, "wrong": 0, "none": 0} for question in QUESTIONS}
    reached = 0
    for path in scripts:
        run = subprocess.run([sys.executable, "-I", __file__, "--record", str(path)], capture_output=True, text=True, timeout=4 * SECONDS)
        truth = json.loads(run.stdout) if run.stdout else {"none": "it was stopped"}
        if "none" in truth:
            print(f"{path}: not executed: {truth['none']}")
            continue
        reached += 1
        ours = of_snug(snug, path)
        line = []
        for question in QUESTIONS:
            verdict = judged(question, truth, ours)
            if not verdict:
                continue
            counts[question][verdict] += 1
            if verdict != "right" and verbose:
                line.append(f"{question} {verdict}: {truth[question]!r} is read as {ours.get(question)!r}")
        if line:
            print(f"{path}: " + "; ".join(line) + (f" [{said}]" if (said := ours.get("without", ours.get("none"))) else ""))
    print(f"\n{len(scripts)} scripts, {reached} made a trainer\n\n| | right | told | wrong | no plan | of |\n|---|---|---|---|---|---|")
    for question, count in counts.items():
        total = sum(count.values())
        print(f"| {question} | {count['right']} | {count['told']} | {count['wrong']} | {count['none']} | {total} |"
              f" {100 * count['right'] / total:.1f} %" if total else f"| {question} | 0 | 0 | 0 | 0 | 0 |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", type=pathlib.Path)
    p.add_argument("--snug", default=str(pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "snug"))
    p.add_argument("--record", action="store_true", help="print what the execution of FILE gave")
    given = p.parse_args()
    if given.record:
        record(given.files[0].resolve())
    compare(given.files, given.snug, True)


if __name__ == "__main__":
    main()
