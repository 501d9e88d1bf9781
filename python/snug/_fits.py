"""Fits: what should I change? Every size is in bytes, every time in seconds; None is what is not known."""

from __future__ import annotations

import dataclasses
from typing import Any, List, Mapping, Optional

from . import _draw
from ._answer import Answer, objects_of, read
from ._plans import Device, Interval, Peak, PyTorchRank, Setup
from ._words import Recipe, flags_of, subject_of


@dataclasses.dataclass(frozen=True)
class FittedModel:
    """The model that was fitted."""

    name: str
    layers: int


@dataclasses.dataclass(frozen=True)
class RunCost:
    """Of the whole run, where its length is known."""

    steps: Optional[int]
    tokens: Optional[int]
    flops: Optional[float]
    seconds: Optional[float]
    dollars: Optional[float]


@dataclasses.dataclass(frozen=True)
class Choice:
    """A recipe that fits: the keys that it sets, what it gives up, what it takes.

    Its peak is ``peak_bytes`` in snug's engine, ``device_bytes`` in PyTorch.
    """

    settings: Mapping[str, str]
    peak_bytes: Optional[int]
    device_bytes: Optional[int]
    effect: str
    given_up: List[str]
    step_seconds: Optional[float]
    cost: RunCost

    @property
    def needed_bytes(self) -> int:
        """The peak in the engine that it is for."""
        return self.device_bytes if self.device_bytes is not None else self.peak_bytes or 0


@dataclasses.dataclass(frozen=True)
class Method:
    """A method and its recipes that fit, best first; ``least_bytes`` is the least that it would need."""

    name: str
    fits: bool
    front: List[Choice]
    least_bytes: Optional[int]
    candidates: int
    compiled: int
    laid_out: int


@dataclasses.dataclass(frozen=True)
class WayOut:
    """Where nothing fits: the cheapest that would."""

    fits: bool
    settings: Mapping[str, str]
    given_up: List[str]
    peak_bytes: int


@dataclasses.dataclass(frozen=True)
class PyTorchFit:
    """The search in PyTorch, and what the recipe that it chose needs there, as in ``PyTorchPlan``.

    ``margin_bytes`` of the card are kept free; ``diff`` is the change of the file; ``smallest_card`` takes what fits no
    smaller one.
    """

    allocated_bytes: int
    reserved_bytes: int
    device_bytes: Interval
    phase: str
    steady_bytes: int
    step_seconds: Optional[float]
    phases: Mapping[str, Peak]
    breakdown: Mapping[str, int]
    fits: bool
    stack: Mapping[str, str]
    setup: Optional[Setup]
    quantized_load: Optional[Mapping[str, int]]
    ranks: List[PyTorchRank]
    trainer: str
    margin_bytes: int
    method: str
    settings: Optional[Mapping[str, str]]
    methods: List[Method]
    way_out: Optional[WayOut]
    smallest_card: Optional[str]
    assumed: List[str]
    seconds: float
    diff: Optional[str]


@dataclasses.dataclass(frozen=True, repr=False)
class Fit(Answer):
    """What should I change? The answer of ``snug fit``.

    ``fits``, ``settings`` and ``diff`` are of the engine that was asked, ``engine``: the keys that the best recipe sets
    (None where nothing fits), and the change of a recipe's file. ``methods`` and ``way_out`` are of snug's engine; those of
    PyTorch are in ``pytorch``, or ``pytorch_not_covered`` says why there are none.
    """

    model: FittedModel
    device: Device
    budget_bytes: int
    fits: bool
    method: str
    methods: List[Method]
    way_out: Optional[WayOut]
    assumed: List[str]
    seconds: float
    diff: Optional[str]
    settings: Optional[Mapping[str, str]]
    pytorch: Optional[PyTorchFit]
    pytorch_not_covered: Optional[str]

    @property
    def engine(self) -> str:
        """For whom the recipe is: "pytorch" or "snug"."""
        return "pytorch" if self.pytorch is not None else "snug"

    @property
    def best(self) -> Optional[Choice]:
        """The recipe that was chosen; None where nothing fits."""
        methods = self.pytorch.methods if self.pytorch is not None else self.methods
        fronts = [method.front for method in methods if method.name == self.method and method.fits]
        return fronts[0][0] if fronts and fronts[0] else None

    def __repr__(self) -> str:
        best = self.best
        what = "nothing fits" if best is None else f"{self.method}, {best.needed_bytes}"
        return f"<snug.Fit: {self.model.name}: {what} of {self.budget_bytes} bytes, engine {self.engine}>"

    def _repr_html_(self) -> str:
        return _draw.fit(self)


def fit(recipe: Optional[Recipe] = None, **keys: Any) -> Fit:
    """What should I change? As ``snug fit`` answers it: the best recipe for a card or a memory.

    ``recipe`` and keys are those of ``snug.plan``. Keys that are set stay, the rest is searched; of a recipe's file what
    saves memory is searched although the file sets it. May take seconds, during which other threads of Python run.

    Raises ``snug.Error`` with the program's line where the question is wrong. That nothing fits is an answer.
    """
    subject, files = subject_of(recipe)
    asked, said, data = objects_of(["fit", *subject, *flags_of(keys)], files)
    there = data.get("pytorch") or {}
    pytorch = read(PyTorchFit, there) if "trainer" in there else None
    found = read(
        Fit,
        data,
        asked=asked,
        messages=said.messages,
        json=data,
        settings=None,
        pytorch=pytorch,
        pytorch_not_covered=there.get("not_covered"),
    )
    if pytorch is not None:  # whose verdict and advice the program prints
        found = dataclasses.replace(found, fits=pytorch.fits, method=pytorch.method, diff=pytorch.diff)
    return dataclasses.replace(found, settings=found.best.settings if found.best is not None else None)
