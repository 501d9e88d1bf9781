#!/usr/bin/env python3
"""A Python script or notebook that trains, executed with libraries that only record; prints what its first trainer was given, as JSON.

    python3 tests/oracle/python_scripts/execute.py FILE

Nothing of a script is known here beforehand: every module that is not Python's own is a stand-in (stand_ins.py). A statement that fails
leaves such a value in the names that it binds, and the next one runs. Scripts are other people's: an audit hook refuses processes,
sockets, native code and writing outside the run's own folder, and time, memory and the size of files are bounded. Run it without a
network all the same."""

import argparse
import ast
import builtins
import getpass
import json
import os
import pathlib
import resource
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # in isolated mode, too

from stand_ins import ABSENT, LENGTHS, TRAINERS, Adapter, Anything, Dtype, Finder, Model, Quantization, Settings  # noqa: E402

SECONDS, MEMORY = 60, 4 << 30


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
    builtins.input = lambda *a: ""
    getpass.getpass = lambda *a, **k: ""
    sys.exit = lambda *a: (_ for _ in ()).throw(RuntimeError("exit"))
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


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]).resolve())
