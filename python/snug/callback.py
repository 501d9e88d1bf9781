"""A callback of transformers' Trainer: the plan before the first step, the peak beside it after the last, and, around
``train()``, why it ran out."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
import traceback
import warnings
from typing import Any, Dict, Optional

import transformers

from ._explanations import Explanation, explain, explain_files
from ._live import Live, check_trainer, files_of, plan_on, read_live
from ._plans import Plan
from .errors import Error

RECEIPT = "snug-receipt.json"


def _peak() -> Dict[str, Optional[int]]:
    """Peaks of this process in bytes: on the GPU as PyTorch counts them, of the host as the kernel does."""
    torch = sys.modules.get("torch")
    on_gpu = torch is not None and torch.cuda.is_available()
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        lines = dict(line.split(":", 1) for line in status if ":" in line)
    return {
        "allocated_bytes": int(torch.cuda.max_memory_allocated()) if on_gpu and torch is not None else None,
        "reserved_bytes": int(torch.cuda.max_memory_reserved()) if on_gpu and torch is not None else None,
        "host_bytes": int(lines["VmHWM"].split()[0]) * 1024,
    }


def _planned(plan: Plan) -> Dict[str, Any]:
    pytorch = plan.pytorch
    device = plan.device
    return {
        "fits": plan.fits,
        "engine": plan.engine,
        "device": None if device is None else device.name,
        "budget_bytes": plan.budget_bytes,
        "allocated_bytes": None if pytorch is None else pytorch.allocated_bytes,
        "reserved_bytes": None if pytorch is None else pytorch.reserved_bytes,
        "device_bytes": None if pytorch is None else [pytorch.device_bytes.low, pytorch.device_bytes.high],
        "phase": None if pytorch is None else pytorch.phase,
        "snug_peak_bytes": plan.peak_bytes,
    }


class Callback(transformers.TrainerCallback):  # type: ignore[misc]
    """Prints the plan of a run before its first step, warns where it does not fit, and writes a receipt.

    ``gpu`` is the card to plan for, by default the one that torch sees; ``memory`` a budget (``"24GiB"``, or a number of
    bytes). The receipt, ``snug-receipt.json`` in ``output_dir``, has what was planned and what was measured, in bytes, and
    how the run ended. Of several processes the first one plans and writes.

    It never stops a run: what cannot be planned is said and written. Callbacks are not told of exceptions, so it is a
    context manager too, which explains a run that fails for memory, writes that into the receipt, and lets the error go
    on::

        with callback:
            trainer.train()

    Nor are they told of metrics, which keep an evaluation's logits: ``snug.from_trainer`` plans them.
    """

    def __init__(self, gpu: Optional[str] = None, memory: Any = None) -> None:
        self.gpu, self.memory = gpu, memory
        self.plan: Optional[Plan] = None
        self.explanation: Optional[Explanation] = None
        self.receipt: Optional[pathlib.Path] = None
        self._live: Optional[Live] = None
        self._written: Dict[str, Any] = {}
        self._own_seconds = 0.0
        self._began = 0.0

    # --- As transformers calls it

    def on_train_begin(self, args: Any, state: Any, control: Any, **there: Any) -> None:
        """Plans, prints, warns."""
        if not state.is_world_process_zero:
            return
        begin = self._began = time.monotonic()
        self._own_seconds = 0.0
        self.receipt = pathlib.Path(args.output_dir) / RECEIPT
        self._written = {"schema": 1, "ended": None, "plan": None, "not_planned": None, "measured": None, "explanation": None}
        try:
            self._make_plan(args, there)
        except Exception as error:  # of whatever a model or its arguments hold that nobody foresaw
            self._written["not_planned"] = str(error) if isinstance(error, Error) else repr(error)
            print(f"snug: not planned: {self._written['not_planned']}", flush=True)
        self._write(begin)

    def on_train_end(self, args: Any, state: Any, control: Any, **there: Any) -> None:
        """Writes what was measured beside what was planned."""
        if self.receipt is None or not state.is_world_process_zero:
            return
        begin = time.monotonic()
        self._written["steps"] = state.global_step
        self._end("done")
        self._write(begin)

    # --- Around train()

    def __enter__(self) -> Callback:
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        """Explains an error of memory; no error is held back."""
        if error is None or self.receipt is None:
            return
        begin = time.monotonic()
        text = "".join(traceback.format_exception(kind, error, trace))
        try:
            self._explain(text)
        except Error as reason:  # mostly that it is no error of memory
            self._written["not_explained"] = str(reason)
        self._end("failed")
        self._written["error"] = text.strip().splitlines()[-1]
        self._write(begin)

    # --- Parts

    def _make_plan(self, args: Any, there: Dict[str, Any]) -> None:
        loader = there.get("train_dataloader")
        self._live = read_live(
            there["model"], args, check_trainer(type(args)), getattr(loader, "dataset", None), optimizer=there.get("optimizer")
        )
        plan = self.plan = plan_on(self._live, self.gpu, self.memory)
        print(f"{plan.messages}{plan.verdict}", flush=True)
        if plan.fits is False:
            warnings.warn(f"this run will not fit: {plan.verdict.splitlines()[0]}; snug.fit says what to change", stacklevel=2)
        self._written["plan"] = _planned(plan)

    def _explain(self, text: str) -> None:
        if self._live is None:
            self.explanation = explain(text)
        else:
            files, recipe = files_of(self._live)
            keys = {"gpu": self.gpu, "memory": self.memory, "stack": self._live.flags["stack"]}
            self.explanation = explain_files([files.write("traceback.log", text), recipe], files, keys)
        print(self.explanation, flush=True)
        self._written["explanation"] = self.explanation.json

    def _end(self, how: str) -> None:
        self._written.update(ended=how, measured=_peak(), seconds=round(time.monotonic() - self._began, 3))

    def _write(self, begin: float) -> None:
        """The receipt, whole or not at all; what it took since ``begin`` counts as the callback's own time."""
        assert self.receipt is not None
        self.receipt.parent.mkdir(parents=True, exist_ok=True)
        self._own_seconds += time.monotonic() - begin
        text = json.dumps({**self._written, "own_seconds": round(self._own_seconds, 4)}, indent=1)
        draft = self.receipt.with_suffix(".part")
        draft.write_text(text + "\n", encoding="utf-8")
        os.replace(draft, self.receipt)
