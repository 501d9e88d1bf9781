#!/usr/bin/env python3
"""Runs what the documents say: check_docs.py [SNUG]

Every ```console block of README.md and docs/*.md is run, line by line, where a line starts with "$ ": each document in a temporary
directory of its own that holds `demo` and, written first, every block marked like ```yaml file=NAME. A command must exit with 0, or with
N where it ends in "# exit code N". Lines without "$ " are output, shown to people and not compared. Links between documents must lead
somewhere."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 300


def blocks(text):
    """(info string, lines, number of the first line) of each fenced block."""
    info, lines, first = None, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if info is None and line.startswith("```"):
            info, lines, first = line[3:].strip(), [], number + 1
        elif info is not None and line.startswith("```"):
            yield info, lines, first
            info = None
        elif info is not None:
            lines.append(line)


def commands(lines, first):
    """(command, number of its line) of each `$ ` line; a backslash at the end goes on with the next line."""
    command, start = None, 0
    for number, line in enumerate(lines, first):
        if command is None and line.startswith("$ "):
            command, start = line[2:], number
        elif command is not None:
            command += "\n" + line
        if command is not None and not command.endswith("\\"):
            yield command, start
            command = None


def run(document, environment):
    """Runs a document's commands; returns how many, and what went wrong."""
    ran, wrong = 0, []
    with tempfile.TemporaryDirectory(prefix="snug-docs-") as directory:
        shutil.copytree(ROOT / "demo", pathlib.Path(directory) / "demo")
        for info, lines, first in blocks(document.read_text()):
            language, _, name = info.partition(" file=")
            if name:
                (pathlib.Path(directory) / name).write_text("\n".join(lines) + "\n")
            if language != "console":
                continue
            for command, number in commands(lines, first):
                expected = re.search(r"# exit code (\d+)\s*$", command)
                code = int(expected[1]) if expected else 0
                try:
                    done = subprocess.run(["bash", "-c", command], cwd=directory, env=environment, timeout=SECONDS, text=True,
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    problem = "" if done.returncode == code else f"exit code {done.returncode}, not {code}\n{done.stdout[-2000:]}"
                except subprocess.TimeoutExpired:
                    problem = f"still running after {SECONDS} s"
                ran += 1
                if problem:
                    wrong.append(f"{document.relative_to(ROOT)}:{number}: $ {command}\n{problem}")
    return ran, wrong


def broken_links(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
        if "://" not in target and not (document.parent / target).exists():
            yield f"{document.relative_to(ROOT)}: there is no {target}"


def main():
    snug = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "snug").resolve()
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", PATH=f"{snug.parent}{os.pathsep}{os.environ['PATH']}")
    ran, wrong = 0, []
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]:
        count, problems = run(document, environment)
        ran += count
        wrong += problems + list(broken_links(document))
    print("\n".join(wrong) if wrong else f"{ran} commands of the documents do what they say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
