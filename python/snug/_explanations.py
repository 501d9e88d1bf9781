"""Explanations: why did it run out? Every size is in bytes; None is what is not known."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, List, Mapping, Optional, Sequence, Union

from . import _draw
from ._answer import Answer, objects_of, read
from ._words import Files, Recipe, flags_of, subject_of


@dataclasses.dataclass(frozen=True)
class Frame:
    """A line of a program."""

    file: str
    line: Optional[int]
    function: str
    code: str


@dataclasses.dataclass(frozen=True)
class Advice:
    """A change, in the trainer's words; ``do`` is a word for it for scripts, ``most_bytes`` what it can give at most."""

    change: str
    effect: str
    do: Optional[str]
    most_bytes: Optional[int]


@dataclasses.dataclass(frozen=True)
class RecipeAdvice:
    """What to change in the recipe; ``diff`` is the change of its file, ``peak_bytes`` the peak with it."""

    dialect: str
    model: str
    device: str
    engine: str
    outside_training: Optional[str]
    plan_bytes: int
    budget_bytes: int
    levers: List[Mapping[str, Any]]
    enough: Optional[bool]
    settings: Mapping[str, str]
    peak_bytes: Optional[int]
    diff: Optional[str]


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation(Answer):
    """Why did it run out? The answer of ``snug explain``.

    ``kind`` is message (a log or traceback), snapshot, memory_summary or profiler_trace; figures of one kind alone are in
    ``json``, as docs/explain.md lists them. ``advice`` begins with what changes least; ``recipe`` is there where a recipe
    was given.
    """

    kind: str
    answer: str
    cause: Optional[str]
    or_cause: Optional[str]
    what: Optional[str]
    stage: Optional[str]
    source: Optional[Frame]
    called_by: Optional[Frame]
    arithmetic: List[str]
    remarks: List[str]
    advice: List[Advice]
    recipe: Optional[RecipeAdvice]

    def __repr__(self) -> str:
        return f"<snug.Explanation: {self.answer}>"

    def _repr_html_(self) -> str:
        return _draw.explanation(self)


def _is_text(subject: Union[str, "os.PathLike[str]"]) -> bool:
    return isinstance(subject, str) and ("\n" in subject or not os.path.exists(subject)) and len(subject.split()) > 1


def explain(subject: Union[str, "os.PathLike[str]"], recipe: Optional[Recipe] = None, **keys: Any) -> Explanation:
    """Why did it run out? As ``snug explain`` answers it.

    ``subject`` is the path of a log, traceback, memory snapshot, memory summary or profiler trace of PyTorch, or the text
    of one of them (what has several words and is no path). ``recipe`` (as for ``snug.plan``) adds what to change in it;
    keys are the program's flags, such as ``gpu``.

    Raises ``snug.Error`` where there is nothing to explain.
    """
    files: Optional[Files] = None
    if _is_text(subject):
        files = Files()
        subject = files.write("text.log", os.fspath(subject))
    words, files = subject_of(recipe, files)
    return explain_files([os.fspath(subject), *words], files, keys)


def explain_files(paths: Sequence[str], files: Optional[Files], keys: Mapping[str, Any]) -> Explanation:
    """The explanation of what lies at the first path, with the recipe at the second; some may be of ``files``."""
    asked, said, data = objects_of(["explain", *paths, *flags_of(keys)], files)
    return read(
        Explanation,
        data,
        asked=asked,
        messages=said.messages,
        json=data,
        answer=data.get("answer", ""),
        arithmetic=data.get("arithmetic", []),
        remarks=data.get("remarks", []),
        advice=[read(Advice, each) for each in data.get("advice", [])],
    )
