"""Runs the script of a case on the null device: on a card that is large enough, or on the case's."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
PLENTY = 900 << 30
OUT_OF_MEMORY = re.compile(r"^(\[rank\d+\]: )?torch\.(cuda\.)?OutOfMemoryError: ", re.M)


@dataclass
class Run:
    code: int
    out_of_memory: bool
    log: str
    seconds: float
    phase: str | None = None  # where memory ran out, as `snug measure` tells
    steps: int = 0            # that were finished
    rows: list = field(default_factory=list)
    outside_bytes: int = 0    # of the card, before the program takes anything
    versions: dict = field(default_factory=dict)

    @property
    def peak(self):
        return max((row["peak"] for row in self.rows), default=0)

    @property
    def peak_reserved(self):
        return max((row["peak_reserved"] for row in self.rows), default=0)


def files_of(program):
    """The program, and of the modules beside it those that it imports, in any depth."""
    found, todo = [], [program]
    while todo:
        name = todo.pop()
        found.append(name)
        for module in re.findall(r"^\s*(?:from|import) (\w+)", (PROGRAMS / f"{name}.py").read_text(), re.M):
            if (PROGRAMS / f"{module}.py").exists() and module not in found + todo:
                todo.append(module)
    return found


def keys_of(program):
    """What a program takes from its settings."""
    return {key for name in files_of(program) for key in re.findall(r"\bargs\.(\w+)", (PROGRAMS / f"{name}.py").read_text())}


def write_folder(folder, program, settings, config):
    folder.mkdir(parents=True, exist_ok=True)
    for name in files_of(program):
        shutil.copy(PROGRAMS / f"{name}.py", folder / ("train.py" if name == program else f"{name}.py"))
    (folder / "settings.json").write_text(json.dumps(settings, indent=1) + "\n")
    if config:
        (folder / "model").mkdir(exist_ok=True)
        (folder / "model" / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def environment(machine, rows, libraries, torch_release):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTORCH_", "SNUG_", "LABORATORY_"))}
    env.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    if machine.get("alloc_conf"):
        env["PYTORCH_CUDA_ALLOC_CONF"] = machine["alloc_conf"]
        if torch_release >= (2, 9):
            env["PYTORCH_ALLOC_CONF"] = machine["alloc_conf"]
    if machine.get("others"):
        env["SNUG_NULL_OTHERS"] = ",".join(str(one) for one in machine["others"])
        env["SNUG_NULL_LISTS"] = str(int(machine.get("listed", True)))
    if rows:
        env.update(LABORATORY_ROWS=str(rows), LABORATORY_LIBRARIES=str(int(libraries)), PYTHONPATH=str(HERE))
    return env


def run(stack, folder, machine, memory, record="program", rows=False, limit=300):
    """Runs folder/train.py; `record`: who keeps the snapshot: the program, `measure`, or nobody."""
    folder = folder.resolve()
    row_file = folder / "rows.json"
    result = folder / "measure.json"
    for old in (result, *folder.glob("rows.json*")):
        old.unlink(missing_ok=True)
    ranks = machine.get("ranks", 1)
    command = [stack.snug, "measure", "--gpu", machine["gpu"], "--memory", f"{memory}B", "--gpus", str(ranks), "--json", str(result)]
    command += ["--synthetic"] if machine.get("synthetic") else []
    command += ["--snapshot", str(folder / "snapshot.pickle"), "--"] if record == "measure" else ["--", "env", "-u", "SNUG_MEASURE_SNAPSHOT"]
    command += [stack.python, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--standalone"] if ranks > 1 else [stack.python]
    began = time.time()
    env = environment(machine, row_file if rows else None, machine.get("libraries", False), stack.torch)
    try:
        done = subprocess.run(command + ["train.py"], cwd=folder, env=env, capture_output=True, text=True, errors="replace", timeout=limit)
        code, log, errors = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        code, log, errors = 124, "", f"timed out after {error.timeout} s"
    one = Run(code, bool(OUT_OF_MEMORY.search(errors)), log + errors, time.time() - began)
    if result.exists():
        measured = json.loads(result.read_text())["measured"]
        ran_out = measured.get("out_of_memory") or {}
        one.phase, one.steps, one.versions = ran_out.get("phase"), len(measured.get("steps", [])), measured.get("stack", {})
    row_files = sorted(folder.glob("rows.json*"))
    if row_files:
        seen = json.loads(row_files[0].read_text())
        one.rows, one.outside_bytes = seen["rows"], seen["outside_bytes"]
    (folder / "stderr.txt").write_text(errors)
    return one


@dataclass
class Stack:
    """A Python with PyTorch, and the snug that measures."""
    python: str
    snug: str
    torch: tuple = (0, 0)

    @classmethod
    def of(cls, python, snug):
        code = "import importlib.metadata as m; print(m.version('torch'))"
        release = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        return cls(python, snug, tuple(int(part) for part in release.split("+")[0].split(".")[:2]))
