#!/usr/bin/env python3
"""from_release.py COMPILER WORDS…: stands before the compiler of the build that holds the planner alone. An object that the release
build has of the same source with the same words is taken from there; all others are compiled. Words of OpenMP may differ, where the
object asks nothing of its library.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

RELEASE = pathlib.Path(__file__).resolve().parents[1] / "build"
PLACES = {"-o", "-MF", "-MT"}  # each before where something is written
OPENMP = {"-fopenmp", "-Wno-unknown-pragmas"}


def meaning(words, build):
    """What is compiled and how, but for the build that it is for."""
    kept = [word.replace(f"{build}/", "BUILD/") for before, word in zip([""] + words, words) if before not in PLACES]
    return [word for word in kept if word not in OPENMP and word not in PLACES and word not in {"-MD", "-c"}]


def made_by_release(words):
    """The release build's object of the same source and words, or None."""
    object_name = words[words.index("-o") + 1]
    for entry in json.loads((RELEASE / "compile_commands.json").read_text()):
        theirs = shlex.split(entry["command"])
        if os.path.basename(theirs[0]) == "ccache":
            theirs = theirs[1:]
        made = RELEASE / object_name
        if object_name in theirs and meaning(theirs, RELEASE) == meaning(words, pathlib.Path.cwd()) and made.exists():
            asks_openmp = "GOMP_" in subprocess.run(["nm", "-u", made], capture_output=True, text=True, check=True).stdout
            return None if asks_openmp else made
    return None


def main():
    words = sys.argv[1:]
    made = made_by_release(words) if "-o" in words and "-c" in words else None
    if made is None:
        os.execvp(words[0], words)
    taken = words[words.index("-o") + 1]
    shutil.copyfile(made, taken)
    pathlib.Path(words[words.index("-MF") + 1]).write_text(f"{taken}: {made}\n")  # anew when the release's is made anew


main()
