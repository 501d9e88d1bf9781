"""The console script: the program that the wheel carries, in the place of this process."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs snug with the words of this process."""
    program = str(pathlib.Path(__file__).parent / "bin" / "snug")
    os.execv(program, ["snug", *sys.argv[1:]])
