"""Peaks by phase, steps, and the result that `snug measure` reads.

Time is cut where a phase is known to begin or end: a backward, an optimizer's step, an evaluation, a save. What lies between is named by
what ends it: before a backward it was a forward, before an optimizer's step it was gradients being clipped. The program's own peak
figures (torch.cuda.max_memory_allocated and the like) are kept as if nobody had cut."""

import atexit
import contextlib
import functools
import importlib
import json
import os
import pickle
import resource
import sys
import time

import snug_measure

_torch = None
_user_peak = {}  # device → [allocated, reserved] of the intervals since the program itself reset its peaks
_phases = {}     # name → [allocated, reserved]
_steps = []      # one row a step: [allocated, reserved]
_open = []       # explicit phases that are running
_state = {"steady": None, "train_end": None, "out_of_memory": None, "loaded": False, "armed": False, "written": False}
MOST_EVENTS = 400_000


def _now(key, device):
    return _torch.cuda.memory_stats_as_nested_dict(device).get(key, {}).get("all", {})


def _cut(name, of_step=True):
    """Ends an interval: its peak belongs to the phase `name`, and to the step if it is of one."""
    if not _torch.cuda.is_initialized():
        return
    device = _torch.cuda.current_device()
    peak = [_now(key, device).get("peak", 0) for key in ("allocated_bytes", "reserved_bytes")]
    rows = [_phases.setdefault(name, [0, 0]), _user_peak.setdefault(device, [0, 0])]
    if of_step and _state["loaded"] and name in ("forward", "backward", "optimizer"):
        if not _steps:
            _steps.append([0, 0])
        rows.append(_steps[-1])
    for row in rows:
        row[:] = [max(a, b) for a, b in zip(row, peak)]
    _torch._C._cuda_resetPeakMemoryStats(device)


def _name_between():
    return _open[-1] if _open else ("forward" if _state["loaded"] else "load")


@contextlib.contextmanager
def phase(name):
    """What runs inside belongs to `name`."""
    _cut(_name_between(), of_step=False)
    _open.append(name)
    try:
        yield
    finally:
        _cut(name)
        _open.pop()


def _within(name):
    def wrap(function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            if _open or not _torch.cuda.is_initialized():
                return function(*args, **kwargs)
            with phase(name):
                return function(*args, **kwargs)
        return inside
    return wrap


def _watch_first_module():
    """The next module that is called says that loading, or a step, is over."""
    if _state["armed"]:
        return
    _state["armed"] = True
    handle = None

    def first(module, _):
        if not (module.training and _torch.is_grad_enabled()) or next(module.children(), None) is None:
            return
        handle.remove()
        _state["armed"] = False
        if not _state["loaded"]:
            _cut("load")
            _state["loaded"] = True
        elif _torch.cuda.is_initialized():
            _state["steady"] = _torch.cuda.memory_allocated()
            _stop_when_done()
    handle = _torch.nn.modules.module.register_module_forward_pre_hook(first)


def _stop_when_done():
    wanted = int(os.environ.get("SNUG_MEASURE_STEPS") or 0)
    if wanted and len(_steps) > wanted:
        _steps.pop()
        write()
        raise SystemExit(0)


def _before_step(*_):
    _state["loaded"] = True
    _cut("optimizer")


def _after_step(*_):
    _cut("optimizer")
    _steps.append([0, 0])  # the next one, dropped at the end if nothing comes
    _watch_first_module()


def _keep_the_programs_peaks(torch):
    stats, reset = torch.cuda.memory_stats, torch.cuda.reset_peak_memory_stats

    def index(device):
        return torch.cuda._utils._get_device_index(device, optional=True)

    def memory_stats(device=None):
        result = stats(device)
        for key, seen in zip(("allocated_bytes", "reserved_bytes"), _user_peak.get(index(device), (0, 0))):
            name = key + ".all.peak"
            if name in result:
                result[name] = max(result[name], seen)
        return result

    def reset_peak_memory_stats(device=None):
        _cut(_name_between(), of_step=False)
        _user_peak.pop(index(device), None)
        return reset(device)
    for module in (torch.cuda, torch.cuda.memory):
        module.memory_stats, module.reset_peak_memory_stats = memory_stats, reset_peak_memory_stats
        module.reset_max_memory_allocated = module.reset_max_memory_cached = reset_peak_memory_stats


def _ran_out(device, asked, _, free):
    """PyTorch is about to raise OutOfMemoryError: what it held is kept for `snug explain`."""
    if _state["out_of_memory"] is not None:
        return
    last = {"load": "load"}.get(_name_between(), _state.get("inside") or _name_between())
    _state["out_of_memory"] = {"phase": last, "asked_bytes": asked, "free_bytes": free, "device": device}
    path = os.environ.get("SNUG_MEASURE_SNAPSHOT")
    if path:
        try:
            with open(_of_rank(path), "wb") as file:
                pickle.dump(_without_own_frames(_torch.cuda.memory._snapshot()), file)
            _state["out_of_memory"]["snapshot"] = _of_rank(path)
        except Exception as error:  # the figures are worth having without it
            snug_measure.say(f"no snapshot: {error}")


def _without_own_frames(snapshot):
    """The snapshot as it would be without us: calls pass through frames of ours, which tell nothing."""
    seen = set()
    events = [event for trace in snapshot["device_traces"] for event in trace]
    for holder in [*events, *(block for segment in snapshot["segments"] for block in (segment, *segment["blocks"]))]:
        frames = holder.get("frames")
        if frames and id(frames) not in seen:
            seen.add(id(frames))
            frames[:] = [frame for frame in frames if not frame["filename"].startswith(snug_measure.DIRECTORY)]
    return snapshot


def _of_rank(path):
    rank = os.environ.get("RANK", "0")
    return path if rank == "0" else f"{path}.rank{rank}"


def _note_steady():
    if _torch is not None and _torch.cuda.is_initialized():
        _state["train_end"] = _torch.cuda.memory_allocated()


def begin(torch):
    global _torch
    _torch = torch
    backward = torch.autograd.backward

    @functools.wraps(backward)
    def marked(*args, **kwargs):
        _cut("forward")
        _state["loaded"], _state["inside"] = True, "backward"
        try:
            return backward(*args, **kwargs)
        finally:
            _state["inside"] = None
            _cut("backward")
    torch.autograd.backward = marked
    optimizers = importlib.import_module("torch.optim.optimizer")
    optimizers.register_optimizer_step_pre_hook(_before_step)
    optimizers.register_optimizer_step_post_hook(_after_step)
    torch.save = _within("save")(torch.save)
    _keep_the_programs_peaks(torch)
    _watch_first_module()
    _observe(torch)
    atexit.register(write)


def _observe(torch):
    """The allocator's history and its cry for memory, from the moment that CUDA is set up."""
    def start():
        torch._C._cuda_attach_out_of_memory_observer(_ran_out)
        if os.environ.get("SNUG_MEASURE_SNAPSHOT"):
            torch.cuda.memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=MOST_EVENTS)
    torch.cuda._lazy_call(start)


def prepare_trainer(module):
    """transformers' Trainer tells its phases itself."""
    trainer = module.Trainer
    for method in ("evaluate", "predict", "evaluation_loop", "prediction_loop"):  # axolotl puts a loop of its own into its place
        if hasattr(trainer, method):
            setattr(trainer, method, _within("evaluate")(getattr(trainer, method)))
    for method in ("_save_checkpoint", "save_model"):
        if hasattr(trainer, method):
            setattr(trainer, method, _within("save")(getattr(trainer, method)))
    handler = module.CallbackHandler
    end = handler.on_train_end

    def on_train_end(self, *args, **kwargs):
        _note_steady()
        return end(self, *args, **kwargs)
    handler.on_train_end = on_train_end


def _versions():
    names = ("torch", "transformers", "peft", "trl", "accelerate", "bitsandbytes", "deepspeed", "flash_attn", "liger_kernel", "unsloth", "axolotl")
    return {name: str(getattr(sys.modules[name], "__version__", "")) for name in names if name in sys.modules}


def _library():
    import ctypes
    library = ctypes.CDLL("libcuda.so.1")
    for name in ("peak_bytes", "pinned_peak_bytes", "managed_peak_bytes"):
        getattr(library, "snug_null_device_" + name).restype = ctypes.c_int64
    library.snug_null_device_refused.restype = ctypes.c_char_p
    return library


def write():
    """Writes this process' result, once, if it used a device."""
    if _state["written"] or _torch is None or not _torch.cuda.is_initialized() or os.getpid() != _PID:
        return
    _state["written"] = True
    _cut("after" if _steps and _state["armed"] else _name_between())
    while _steps and _steps[-1] == [0, 0]:
        _steps.pop()
    library, device = _library(), _torch.cuda.current_device()
    trained = {name: row for name, row in _phases.items() if name != "after"}
    allocated_in = max(trained, key=lambda name: trained[name][0], default=None)
    result = {
        "rank": int(os.environ.get("RANK", "0")), "device": device, "phase": allocated_in,
        "allocated_bytes": max((row[0] for row in _phases.values()), default=0),
        "reserved_bytes": max((row[1] for row in _phases.values()), default=0),
        "driver_bytes": library.snug_null_device_peak_bytes(device),
        "steady_bytes": _state["train_end"] if _state["train_end"] is not None else _state["steady"],
        "pinned_bytes": library.snug_null_device_pinned_peak_bytes(), "managed_bytes": library.snug_null_device_managed_peak_bytes(),
        "phases": {name: {"allocated_bytes": row[0], "reserved_bytes": row[1]} for name, row in _phases.items()},
        "steps": [{"allocated_bytes": row[0], "reserved_bytes": row[1]} for row in _steps],
        "out_of_memory": _state["out_of_memory"], "versions": _versions(), "refused": library.snug_null_device_refused().decode().split(),
        "command": getattr(sys, "orig_argv", sys.argv), "seconds": round(time.time() - snug_measure.BEGAN, 2),
        "host_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    path = os.path.join(snug_measure.DIRECTORY, "results", f"{os.getpid()}.json")
    with open(path + ".part", "w") as file:
        json.dump(result, file)
    os.replace(path + ".part", path)


_PID = os.getpid()
