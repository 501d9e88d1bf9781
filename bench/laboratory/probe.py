"""Follows a run on a card that is large enough: a row for each stretch of a phase, with its peaks in bytes.

`programs/here.py` starts it where LABORATORY_ROWS names the file that the rows are written to. Phases: load (before the first forward), forward,
backward, optimizer, evaluation (a forward without gradients, or Trainer's loop), generate, save, between (all else)."""

import atexit
import contextlib
import functools
import json
import os

_rows, _open = [], []
_state = {"loaded": False, "step": 0, "forwards": 0, "depth": 0}
_torch = None


def _cut(name):
    if not _torch.cuda.is_initialized():
        return
    row = {"phase": name, "step": _state["step"], "forwards": _state["forwards"],
           "peak": _torch.cuda.max_memory_allocated(), "peak_reserved": _torch.cuda.max_memory_reserved(),
           "allocated": _torch.cuda.memory_allocated(), "reserved": _torch.cuda.memory_reserved(),
           "requested": _torch.cuda.memory_stats().get("requested_bytes.all.current")}
    _torch.cuda.reset_peak_memory_stats()
    _rows.append(row)


def _between():
    return _open[-1] if _open else "between" if _state["loaded"] else "load"


@contextlib.contextmanager
def phase(name):
    _cut(_between())
    _open.append(name)
    try:
        yield
    finally:
        _cut(name)
        _open.pop()


def within(owner, method, name):
    real = getattr(owner, method, None)
    if real is None:
        return

    @functools.wraps(real)
    def inside(*args, **kwargs):
        if _open:
            return real(*args, **kwargs)
        with phase(name):
            return real(*args, **kwargs)
    setattr(owner, method, inside)


def _follow_forwards():
    def before(module, _):
        _state["depth"] += 1
        if _state["depth"] > 1:
            return
        _cut(_between())
        _state["loaded"] = True
        _state["forwards"] += 1
        if not _open:
            _open.append("forward" if _torch.is_grad_enabled() else "evaluation")
            _state["ours"] = True

    def after(*_):
        _state["depth"] -= 1
        if _state["depth"] == 0:
            _cut(_between())
            if _state.pop("ours", False):
                _open.pop()
    _torch.nn.modules.module.register_module_forward_pre_hook(before)
    _torch.nn.modules.module.register_module_forward_hook(after, always_call=True)


def _follow_optimizers():
    from torch.optim import optimizer

    def before(*_):
        _cut(_between())
        _open.append("optimizer")

    def after(*_):
        _cut("optimizer")
        _open.pop()
        _state["step"] += 1
    optimizer.register_optimizer_step_pre_hook(before)
    optimizer.register_optimizer_step_post_hook(after)


def _follow_libraries():
    import importlib.util
    if importlib.util.find_spec("transformers"):
        import transformers
        within(transformers.Trainer, "evaluation_loop", "evaluation")
        within(transformers.GenerationMixin, "generate", "generate")
        within(transformers.PreTrainedModel, "save_pretrained", "save")
    if importlib.util.find_spec("peft"):
        from peft.tuners.lora import LoraModel
        within(LoraModel, "merge_and_unload", "save")


def _write():
    _cut(_between())
    free, total = _torch.cuda.mem_get_info()
    taken = total - free - _torch.cuda.memory_reserved()  # the context
    with open(os.environ["LABORATORY_ROWS"] + os.environ.get("RANK", ""), "w") as file:
        json.dump({"rows": _rows, "outside_bytes": taken, "versions": {"torch": _torch.__version__}}, file)


def begin(torch):
    global _torch
    _torch = torch
    within(torch.autograd, "backward", "backward")
    within(torch, "save", "save")
    _follow_forwards()
    _follow_optimizers()
    if os.environ.get("LABORATORY_LIBRARIES") == "1":
        _follow_libraries()
    atexit.register(_write)
