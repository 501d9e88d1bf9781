"""What all answers share: the object that the program printed, read into fields, and its text."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, TypeVar

from ._ask import Said, ask
from ._words import Files
from .errors import Error

T = TypeVar("T")


@functools.lru_cache(maxsize=None)
def _hints(kind: type) -> Dict[str, Any]:
    return typing.get_type_hints(kind)


def _read_as(hint: Any, value: Any) -> Any:
    """A value of JSON as the type that a field names: dataclasses, and lists and mappings of them."""
    inner = typing.get_args(hint)
    if value is None:
        return None
    if typing.get_origin(hint) is typing.Union:
        return _read_as(inner[0], value)
    if isinstance(value, list) and inner:
        return [_read_as(inner[0], each) for each in value]
    if dataclasses.is_dataclass(hint):
        return read(typing.cast(type, hint), value)
    if isinstance(value, dict) and inner:
        return {name: _read_as(inner[1], each) for name, each in value.items()}
    return value


def read(kind: Type[T], data: Mapping[str, Any], **more: Any) -> T:
    """The fields of a dataclass out of an object of JSON; what the object lacks is None."""
    values = {
        field.name: _read_as(_hints(typing.cast(Any, kind))[field.name], data.get(field.name))
        for field in dataclasses.fields(typing.cast(Any, kind))
        if field.name not in more
    }
    return kind(**values, **more)


def said_by(said: Said, files: Optional[Files]) -> Said:
    """Without the directory of files that nobody named."""
    if files is None:
        return said
    here = f"{files.path}/"
    return Said(said.exit_code, said.output.replace(here, ""), said.messages.replace(here, ""))


def refuse(said: Said) -> None:
    """Raises what the program said, unless it answered."""
    if said.exit_code in (0, 3):
        return
    lines = said.messages.strip().splitlines() or ["snug gave no answer"]
    raise Error(lines[-1][len("snug: ") :] if lines[-1].startswith("snug: ") else lines[-1], said.exit_code, said.messages)


@dataclasses.dataclass(frozen=True)
class Asked:
    """A question to the program and the files that it reads."""

    words: Sequence[str]
    files: Optional[Files] = None

    def answer(self, *more: str) -> Said:
        said = said_by(ask([*self.words, *more]), self.files)
        refuse(said)
        return said


@dataclasses.dataclass(frozen=True, repr=False)
class Answer:
    """An answer of snug. ``str()`` of it is what the program prints; ``json`` is the object that ``--json`` prints."""

    asked: Asked = dataclasses.field(compare=False)
    messages: str = dataclasses.field(compare=False)
    json: Mapping[str, Any]

    @functools.cached_property
    def text(self) -> str:
        """What the program prints, asked for when it is first looked at."""
        return self.asked.answer().output

    def __str__(self) -> str:
        return self.messages + self.text.rstrip("\n")

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def objects_of(words: Sequence[str], files: Optional[Files] = None) -> "tuple[Asked, Said, Dict[str, Any]]":
    """Asks for the object; raises Error where there is none."""
    asked = Asked(tuple(words), files)
    said = asked.answer("--json")
    return asked, said, json.loads(said.output)


def list_of(words: Sequence[str], name: str) -> List[Dict[str, Any]]:
    """The list that a catalogue prints."""
    listed: List[Dict[str, Any]] = objects_of(words)[2][name]
    return listed
