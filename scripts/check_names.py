#!/usr/bin/env python3
"""One name, one meaning: no type and no function of one signature is defined in two files.

The linker takes two definitions under one name for one, and keeps the first: a vector of the one type is then grown by the size of
the other. Compilers see a file at a time, and whether it does harm hangs on what they put in line. What is in a namespace without
a name is a file's own; the sources of a room's tests are held against each other and against src/."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
APART = ("measure/null_device", "kernels/fp64", "kernels/none")  # a library, a module; what stands in the place of kernels/cpu

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*', re.DOTALL | re.MULTILINE)
TYPE = re.compile(r"\b(?:struct|class|union|enum(?:\s+class)?)\s+(?:\[\[[^\]]*\]\]\s*)?(\w+)(?:\s+final)?\s*(?::(?!:)[^{};()]*)?$")
FUNCTION = re.compile(r"([\w:~]+)\s*(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))\s*(?:const|noexcept|HWY_ATTR|->[^{]*)*\s*$")


def definitions(text):
    """(name with its namespaces, parameters or "type") of what is defined in namespaces that have names."""
    text = NOISE.sub("", text)
    scopes, start = [], 0  # a scope: its name, where it is a namespace, else None
    for mark in re.finditer(r"[{};]", text):
        head, start = text[start:mark.start()], mark.end()
        if mark[0] == "}" and scopes:
            scopes.pop()
        if mark[0] != "{":
            continue
        namespace = re.search(r"\bnamespace\s*([\w:]*)\s*$", head)
        if scopes and all(scopes) and not namespace:
            spaces = "::".join(scopes)
            if found := TYPE.search(head):
                if not re.search(r"\btemplate\s*<\s*>", head):
                    yield f"{spaces}::{found[1]}", "type"
            elif (found := FUNCTION.search(head)) and not found[1].endswith("_") and "static" not in head:
                types = re.sub(r"\s+", " ", re.sub(r"(?<=[\w&*>\]])\s+\w+\s*(?=[,)])", "", found[2]))
                yield f"{spaces}::{found[1]}", types
        scopes.append(namespace[1] if namespace else None)


def read(folder):
    found = collections.defaultdict(set)
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(ROOT)
        if path.suffix in {".cpp", ".h"} and not any(str(relative).startswith(f"src/{apart}/") for apart in APART):
            for definition in definitions(path.read_text()):
                found[definition].add(str(relative))
    return found


def main():
    source = read(ROOT / "src")
    groups = [source]
    for folder in sorted(path for path in (ROOT / "tests").iterdir() if path.is_dir()):
        own = read(folder)
        groups.append({definition: files | source.get(definition, set()) for definition, files in own.items()})
    wrong = [f"{name}{'' if kind == 'type' else kind} is defined in {', '.join(sorted(files))}: one needs another name"
             for group in groups for (name, kind), files in sorted(group.items()) if len(files) > 1]
    print("\n".join(wrong) if wrong else f"{len(source)} names of src/ have one meaning each")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
