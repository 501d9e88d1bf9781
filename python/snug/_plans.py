"""Plans: will it fit? Every size is in bytes, every time in seconds; None is what is not known."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Mapping, Optional

from . import _draw
from ._answer import Answer, objects_of, read
from ._words import Recipe, flags_of, subject_of


@dataclasses.dataclass(frozen=True)
class PlannedModel:
    """The sizes of the model; ``family`` as its ``model_type`` says."""

    name: str
    family: str
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocab_size: int
    tied_embeddings: bool


@dataclasses.dataclass(frozen=True)
class Device:
    """What is planned for: an accelerator of ``snug.gpus()``, or this machine."""

    name: str
    memory_bytes: int


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of a step, and of the run where its length is known."""

    tokens: Optional[int]
    flops: Optional[float]
    seconds: Optional[float]
    dollars: Optional[float]
    steps: Optional[int]
    step_flops: float
    step_seconds: Optional[float]
    source: Optional[str]


@dataclasses.dataclass(frozen=True)
class Homes:
    """Where snug's bytes lie, and what comes from disk and goes there in a step."""

    device: int
    host: int
    disk: int
    fetched_a_step: int
    sent_a_step: int


@dataclasses.dataclass(frozen=True)
class Rank:
    """One of the ``count`` processes that are alike, in snug's engine."""

    count: int
    peak_bytes: int
    arena_bytes: int
    stage: Optional[int]
    sent_bytes: Optional[int]


@dataclasses.dataclass(frozen=True)
class Interval:
    """From ``low`` to ``high`` bytes."""

    low: int
    high: int


@dataclasses.dataclass(frozen=True)
class Peak:
    """Of a phase: what tensors hold, and what PyTorch took from the device."""

    allocated_bytes: int
    reserved_bytes: int


@dataclasses.dataclass(frozen=True)
class PyTorchRank:
    """One of the ``count`` processes that are alike, in PyTorch."""

    count: int
    allocated_bytes: int
    reserved_bytes: int


@dataclasses.dataclass(frozen=True)
class Setup:
    """What of PyTorch was followed, in transformers' words. ``length`` is the tokens of a row."""

    method: str
    weights: str
    autocast: Optional[str]
    quantization: str
    preparation: str
    attention: str
    checkpointing: str
    optimizer: str
    batch: int
    accumulation: int
    length: int
    sharding: str
    ranks: int
    evaluation: Optional[Mapping[str, Any]]
    rank: Optional[int]
    dropout: Optional[float]
    dora: Optional[bool]
    targets: Optional[List[str]]


@dataclasses.dataclass(frozen=True)
class Lever:
    """A single change of the recipe: what it saves of the peak, what it costs, what it gives up.

    ``slowdown`` is the time of a step over what it was. The peak with the change is ``peak_bytes`` in snug's engine,
    ``device_bytes`` in PyTorch.
    """

    settings: Mapping[str, str]
    saved_bytes: int
    peak_bytes: Optional[int]
    device_bytes: Optional[int]
    slowdown: float
    effect: str
    note: str


@dataclasses.dataclass(frozen=True)
class PyTorchPlan:
    """What PyTorch needs: ``allocated_bytes`` in tensors, ``reserved_bytes`` taken from the device, ``device_bytes`` as
    nvidia-smi has it, with the driver's context.

    ``breakdown`` is at the peak and sums to ``allocated_bytes``; ``steady_bytes`` stay allocated between steps. ``fits``
    is None where no memory was named; ``step_seconds`` is None where the card's rates are not known or ranks wait for each
    other.
    """

    allocated_bytes: int
    reserved_bytes: int
    device_bytes: Interval
    phase: str
    steady_bytes: int
    step_seconds: Optional[float]
    phases: Mapping[str, Peak]
    breakdown: Mapping[str, int]
    fits: Optional[bool]
    stack: Mapping[str, str]
    setup: Optional[Setup]
    quantized_load: Optional[Mapping[str, int]]
    ranks: List[PyTorchRank]
    levers: Optional[List[Lever]]


@dataclasses.dataclass(frozen=True)
class FileKey:
    """What became of a key of another trainer's recipe: ``fate`` is understood, without effect, touches memory or unknown."""

    name: str
    value: str
    line: int
    fate: str
    ours: Optional[str]
    note: str


@dataclasses.dataclass(frozen=True)
class File:
    """What became of another trainer's recipe."""

    trainer: str
    stage: str
    gpus: Optional[int]
    not_planned: List[str]
    not_known: List[str]
    notes: List[str]
    assumed: Mapping[str, str]
    keys: List[FileKey]


@dataclasses.dataclass(frozen=True, repr=False)
class Plan(Answer):
    """Will it fit? The answer of ``snug plan``.

    ``fits`` is the verdict of the engine that was asked, ``engine``. ``peak_bytes``, ``breakdown`` (at the peak; sums to
    it), ``stages`` (the peak of each, None where there is none) and ``budget_bytes`` are of snug's engine; PyTorch's are in
    ``pytorch``, or ``pytorch_not_covered`` says why there are none. ``is_least`` is True for a model whose step is not
    modelled: ``peak_bytes`` is then what is held in any case, and ``fits`` None where that leaves the question open.
    """

    model: PlannedModel
    fits: Optional[bool]
    peak_bytes: int
    is_least: bool
    peak_stage: Optional[str]
    breakdown: Mapping[str, int]
    stages: Mapping[str, Optional[int]]
    budget_bytes: Optional[int]
    device: Optional[Device]
    total_parameters: Optional[int]
    trainable_parameters: Optional[int]
    homes: Optional[Homes]
    ranks: List[Rank]
    cost: Optional[Cost]
    recipe: Mapping[str, Any]
    notes: List[str]
    levers: Optional[List[Lever]]
    pytorch: Optional[PyTorchPlan]
    pytorch_not_covered: Optional[str]
    file: Optional[File]

    @property
    def engine(self) -> str:
        """Whose verdict ``fits`` is: "pytorch" or "snug"."""
        return "pytorch" if self.pytorch is not None and self.pytorch.fits is not None else "snug"

    @property
    def needed_bytes(self) -> int:
        """What that engine needs of the device, at most."""
        return self.pytorch.device_bytes.high if self.pytorch is not None and self.engine == "pytorch" else self.peak_bytes

    @property
    def verdict(self) -> str:
        """The first lines of the text: what each engine says."""
        return self.text.split("\n\n", 1)[0]

    def __repr__(self) -> str:
        word = {True: "fits", False: "does not fit", None: "is not known to fit"}[self.fits]
        budget = "" if self.budget_bytes is None else f" of {self.budget_bytes}"
        return f"<snug.Plan: {self.model.name} {word}, {self.needed_bytes}{budget} bytes, engine {self.engine}>"

    def _repr_html_(self) -> str:
        return _draw.plan(self)


def plan_of(data: Dict[str, Any], **asked: Any) -> Plan:
    """A plan out of the program's object."""
    pytorch = data.get("pytorch") or {}
    is_least = "at_least_bytes" in data
    return read(
        Plan,
        data,
        json=data,
        peak_bytes=data["at_least_bytes"] if is_least else data["peak_bytes"],
        is_least=is_least,
        breakdown=data["held"] if is_least else data["breakdown"],
        stages=data.get("stages", {}),
        recipe=data.get("recipe", {}),
        ranks=[read(Rank, rank) for rank in data.get("ranks", [])],
        notes=data.get("notes", []),
        pytorch=read(PyTorchPlan, pytorch) if "allocated_bytes" in pytorch else None,
        pytorch_not_covered=pytorch.get("not_covered"),
        **asked,
    )


def plan(recipe: Optional[Recipe] = None, **keys: Any) -> Plan:
    """Will it fit? As ``snug plan`` answers it, before anything is downloaded or loaded.

    ``recipe`` is the path of a recipe of any trainer that snug reads (YAML, JSON, a shell or Python script, a notebook), a
    mapping of its keys, a model (checkpoint directory, ``config.json``, name of ``snug.models()``), or left out where
    ``model`` is among the keys. Keys are those of docs/keys.md and the program's flags, with underscores: ``gpu``,
    ``memory`` (``"24GiB"``, or a number of bytes), ``method``, ``max_length`` in tokens, ``stack``, ``levers=True`` ….

    Raises ``snug.Error`` with the program's line where the question is wrong. What does not fit is an answer.
    """
    subject, files = subject_of(recipe)
    asked, said, data = objects_of(["plan", *subject, *flags_of(keys)], files)
    return plan_of(data, asked=asked, messages=said.messages)
