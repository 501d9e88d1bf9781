"""The one way into snug: words as on its command line, in; what it would print, out. The C interface of include/snug/ask.h.

ctypes gives up the interpreter's lock during a call, and the library keeps no state: several threads may ask at once.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import NamedTuple, Sequence

_library = ctypes.CDLL(str(pathlib.Path(__file__).parent / "lib" / "libsnug_planner.so"))
_library.snug_ask.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
_library.snug_ask.restype = ctypes.c_void_p
_library.snug_exit_code.argtypes = [ctypes.c_void_p]
_library.snug_exit_code.restype = ctypes.c_int
for _text in (_library.snug_output, _library.snug_messages):
    _text.argtypes = [ctypes.c_void_p]
    _text.restype = ctypes.c_char_p
_library.snug_free.argtypes = [ctypes.c_void_p]
_library.snug_free.restype = None
_library.snug_version.argtypes = []
_library.snug_version.restype = ctypes.c_char_p


class Said(NamedTuple):
    """An answer: the program's exit code, what it would print, and what it would tell beside that on stderr."""

    exit_code: int
    output: str
    messages: str


def ask(words: Sequence[str]) -> Said:
    """Asks; MemoryError where there is no memory for an answer."""
    encoded = [os.fsencode(word) for word in words]
    if any(b"\0" in word for word in encoded):
        raise ValueError("a word for snug has no zero byte in it")
    answer = _library.snug_ask(len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    if not answer:
        raise MemoryError("no memory for an answer of snug")
    try:
        output, messages = (each(answer).decode("utf-8", "replace") for each in (_library.snug_output, _library.snug_messages))
        return Said(_library.snug_exit_code(answer), output, messages)
    finally:
        _library.snug_free(answer)


def version() -> str:
    """Of the library, "0.1.0"."""
    said: bytes = _library.snug_version()
    return said.decode()
