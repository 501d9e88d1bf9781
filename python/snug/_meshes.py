"""Meshes: how should so many processes share a run? Sizes are bytes, times seconds; None is what is not known."""

from __future__ import annotations

import dataclasses
from typing import Any, List, Mapping, Optional

from ._answer import Answer, objects_of, read
from ._fits import FittedModel
from ._plans import Device
from ._words import Recipe, flags_of, subject_of


@dataclasses.dataclass(frozen=True)
class Mesh:
    """A way to share the run: ``mesh`` in words, the keys that it sets, the command that starts it.

    ``peak_bytes`` and ``sent_bytes``, in a step, are those of the process that needs most.
    """

    mesh: str
    settings: Mapping[str, str]
    peak_bytes: int
    step_seconds: float
    launch: str
    sent_bytes: Optional[int]


@dataclasses.dataclass(frozen=True, repr=False)
class Meshes(Answer):
    """How should so many processes share a run? The answer of ``snug fit --gpus N --gpus-per-node M``, of snug's engine.

    ``meshes`` fit, the fastest first; where none does, ``least`` is what needs least. All have ``step_sequences`` a step.
    """

    model: FittedModel
    device: Device
    budget_bytes: int
    fits: bool
    processes_per_node: int
    step_sequences: int
    meshes: List[Mesh]
    least: Optional[Mesh]
    tried: int
    seconds: float

    def __repr__(self) -> str:
        what = self.meshes[0].mesh if self.meshes else "nothing fits"
        return f"<snug.Meshes: {self.model.name} on {self.device.name}: {what}>"


def meshes(recipe: Optional[Recipe] = None, *, gpus: int, gpus_per_node: int, **keys: Any) -> Meshes:
    """How should ``gpus`` processes, so many to a node, share a run? Keys that are set stay, the rest is searched.

    Raises ``snug.Error`` with the program's line where the question is wrong. That nothing fits is an answer.
    """
    subject, files = subject_of(recipe)
    words = ["fit", *subject, *flags_of({"gpus": gpus, "gpus_per_node": gpus_per_node, **keys})]
    asked, said, data = objects_of(words, files)
    return read(Meshes, data, asked=asked, messages=said.messages, json=data)
