"""Keywords and mappings of Python as the program's words and recipe files."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
import weakref
from typing import Any, Iterator, List, Mapping, Optional, Tuple, Union

Recipe = Union[str, "os.PathLike[str]", Mapping[str, Any]]

# Words whose answer is not an object, and how one gets at it.
_UNTYPED = {
    "json": "every answer is an object already",
    "dump": "ask the program: snug plan --dump",
    "solve": "ask the program: snug plan --solve",
    "megatron": "ask the program: snug plan --megatron",
    "textbook": "call snug.textbook",
}


def text_of(value: Any) -> str:
    """A value as a recipe writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={text_of(inner)}" for key, inner in value.items())
    if isinstance(value, (set, frozenset)):
        return ",".join(sorted(map(text_of, value)))
    if isinstance(value, (list, tuple)):
        return ",".join(map(text_of, value))
    return str(value)


def flags_of(keys: Mapping[str, Any]) -> List[str]:
    """Keywords as flags; None is none, True a flag alone, and a memory that is a number is bytes."""
    words = []
    for name, value in keys.items():
        if name in _UNTYPED:
            raise TypeError(f"{name} is no keyword here: {_UNTYPED[name]}")
        if value is None:
            continue
        flag = f"--{name}"  # underscores are as good as dashes
        if value is True:
            words.append(flag)
        elif name == "memory" and isinstance(value, int):
            words.append(f"{flag}={value}B")
        else:
            words.append(f"{flag}={text_of(value)}")
    return words


def _lines_of(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _entry(f"{indent}{key}:", inner, indent)
    else:
        for inner in value:
            yield from _entry(f"{indent}-", inner, indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    if isinstance(value, (Mapping, list, tuple)) and value:
        yield head
        yield from _lines_of(value, indent + "  ")
    elif isinstance(value, (Mapping, list, tuple)):
        yield f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"
    else:
        scalar = os.fspath(value) if isinstance(value, os.PathLike) else value
        yield f"{head} {json.dumps(scalar, ensure_ascii=False)}"


def yaml_of(recipe: Mapping[str, Any]) -> str:
    """A mapping as the YAML that recipes are written in."""
    return "".join(line + "\n" for line in _lines_of(recipe, ""))


class Files:
    """A directory for what the program shall read; it lasts as long as an answer that names it."""

    def __init__(self) -> None:
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="snug-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def write(self, name: str, text: str) -> str:
        """The path of a new file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)


def subject_of(recipe: Optional[Recipe], files: Optional[Files] = None) -> Tuple[List[str], Optional[Files]]:
    """The words for a recipe or a model, a path or name as it is, a mapping as a file; and the files that they name."""
    if recipe is None:
        return [], files
    if isinstance(recipe, Mapping):
        files = files or Files()
        return [files.write("recipe.yaml", yaml_of(recipe))], files
    return [os.fspath(recipe)], files
