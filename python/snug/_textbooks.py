"""The textbook: the rules of thumb of articles, beside the exact figures. Every size is in bytes."""

from __future__ import annotations

import dataclasses
from typing import Any, List, Mapping, Optional

from . import _draw
from ._answer import Answer, objects_of, read
from ._words import Recipe, flags_of, subject_of


@dataclasses.dataclass(frozen=True)
class TextbookRow:
    """What a rule says, None where it lacks something; ``snug_bytes`` as planned, ``why`` the two differ."""

    bytes: Optional[int]
    rule: str
    snug_bytes: Optional[int]
    why: Optional[str]


@dataclasses.dataclass(frozen=True)
class TextbookActivations:
    """What the rule has activations take."""

    token_and_layer: Optional[int]
    sequence_and_layer: Optional[int]
    sequence: Optional[int]


@dataclasses.dataclass(frozen=True, repr=False)
class Textbook(Answer):
    """The rules of thumb: the answer of ``snug plan --textbook``. ``rows`` are weights, optimizer, gradients, activations and
    overhead."""

    parameters: int
    trained: Optional[int]
    rows: Mapping[str, TextbookRow]
    static_total_bytes: Optional[int]
    total_bytes: Optional[int]
    activations: TextbookActivations
    attention_scores_bytes: Optional[int]
    contradictions: List[str]

    def __repr__(self) -> str:
        return f"<snug.Textbook: {self.parameters} parameters, {self.total_bytes} bytes in all>"

    def _repr_html_(self) -> str:
        return _draw.textbook(self)


def textbook(recipe: Optional[Recipe] = None, **keys: Any) -> Textbook:
    """What the rules of thumb of articles say, beside the exact plan, as ``snug plan --textbook``.

    ``recipe`` is a model, or a round count of parameters (``"7B"``); keys are those of ``snug.plan``, and ``trained``,
    ``hidden``, ``layers``, ``heads``, ``activations`` where a rule needs them.

    Raises ``snug.Error`` with the program's line where the question is wrong.
    """
    subject, files = subject_of(recipe)
    asked, said, data = objects_of(["plan", *subject, "--textbook", *flags_of(keys)], files)
    return read(Textbook, data["textbook"], asked=asked, messages=said.messages, json=data)
