#!/usr/bin/env python3
"""Checks what the documents say: check_docs.py [SNUG]

Commands: every ```console block of README.md, CONTRIBUTING.md and the pages of docs/ is run, line by line, where a line starts with "$ ".
The pages of docs/ run one after the other in one directory, in the order of docs/README.md, as a reader meets them; the other documents
have a directory each. A directory holds `demo`, and every block marked like ```yaml file=NAME is written into it. A command must exit
with 0, or with N where it ends in "# exit code N". Lines without "$ " are output: shown to people and not compared, but in a block
marked ```console compared each must come in the output, in that order; "…" stands for anything, and a number may be 2 % off, because
work space depends on the machine. Of ```sh blocks, `make TARGET` must name a target.

Links must lead somewhere, and every page of docs/ must be in docs/README.md.

Diffs: the added lines of each ```diff block must still be in the files that it names, in that order.

Lines of prose have 128 columns at most; tables, pictures and blocks have what they need."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SECONDS = 300
TOLERANCE = 0.02
COLUMNS = 128
NUMBER = r"\d+(?:\.\d+)?"


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
    """(command, number of its line, output shown) of each `$ ` line; a backslash at the end goes on with the next line."""
    found, going_on = [], False
    for number, line in enumerate(lines, first):
        if going_on:
            found[-1][0] += "\n" + line
        elif line.startswith("$ "):
            found.append([line[2:], number, []])
        elif found and line:
            found[-1][2].append(line)
        going_on = (going_on or line.startswith("$ ")) and line.endswith("\\")
    return found


def alike(shown, line):
    """True if an output line is what a document shows."""
    if "…" in shown:
        return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), line) is not None
    if re.split(NUMBER, shown) != re.split(NUMBER, line):
        return False
    pairs = zip(map(float, re.findall(NUMBER, shown)), map(float, re.findall(NUMBER, line)))
    return all(abs(a - b) <= TOLERANCE * abs(a) for a, b in pairs)


def first_missing(expected, actual, same):
    """The first of the expected lines that the actual ones do not hold in order; none if all are there."""
    rest = iter(actual)
    return next((line for line in expected if not any(same(line, other) for other in rest)), None)


def problem_of(command, shown, directory, environment):
    """Runs a command; what went wrong, or an empty text."""
    expected = re.search(r"# exit code (\d+)\s*$", command)
    code = int(expected[1]) if expected else 0
    try:
        done = subprocess.run(["bash", "-c", command], cwd=directory, env=environment, timeout=SECONDS, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return f"still running after {SECONDS} s"
    if done.returncode != code:
        return f"exit code {done.returncode}, not {code}\n{done.stdout[-2000:]}"
    missing = first_missing(shown, [line.rstrip() for line in done.stdout.splitlines()], alike)
    return f"the output has no line like: {missing}\n{done.stdout[-2000:]}" if missing else ""


def run(documents, environment):
    """Runs the documents' commands in one directory; returns how many, and what went wrong."""
    ran, wrong = 0, []
    with tempfile.TemporaryDirectory(prefix="snug-docs-") as directory:
        shutil.copytree(ROOT / "demo", pathlib.Path(directory) / "demo")
        environment = dict(environment, XDG_CACHE_HOME=str(pathlib.Path(directory) / "cache"))  # receipts of this run alone
        for document in documents:
            for info, lines, first in blocks(document.read_text()):
                language, _, name = info.partition(" file=")
                if name:
                    (pathlib.Path(directory) / name).write_text("\n".join(lines) + "\n")
                if language not in ("console", "console compared"):
                    continue
                for command, number, shown in commands(lines, first):
                    problem = problem_of(command, shown if language == "console compared" else [], directory, environment)
                    ran += 1
                    if problem:
                        wrong.append(f"{document.relative_to(ROOT)}:{number}: $ {command}\n{problem}")
    return ran, wrong


def unknown_targets(document):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for info, lines, first in blocks(document.read_text()):
        for number, line in enumerate(lines, first):
            made = re.match(r"make ([a-z]+)", line)
            if info == "sh" and made and made[1] not in targets:
                yield f"{document.relative_to(ROOT)}:{number}: the Makefile has no target {made[1]}"


def links(document):
    prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [target for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose) if "://" not in target]


def broken_links(document):
    for target in links(document):
        if not (document.parent / target).exists():
            yield f"{document.relative_to(ROOT)}: there is no {target}"


def pages():
    """The pages of docs/ in the order of its index, and what is wrong with the index."""
    listed = [target for target in links(DOCS / "README.md") if re.fullmatch(r"[a-z-]+\.md", target)]
    there = {path.name for path in DOCS.glob("*.md")}
    wrong = [f"docs/README.md does not list {name}" for name in sorted(there - {"README.md", *listed})]
    return [DOCS / "README.md", *(DOCS / name for name in listed if name in there)], wrong


def stale_diffs(document):
    for info, lines, first in blocks(document.read_text()):
        if info != "diff":
            continue
        added = {}
        for line in lines:
            if line.startswith("+++ b/"):
                added[line[6:]] = []
            elif line.startswith("+"):
                added[list(added)[-1]].append(line[1:].rstrip())
        for name, expected in added.items():
            path = ROOT / name
            actual = [line.rstrip() for line in path.read_text().splitlines()] if path.exists() else []
            missing = first_missing(expected, actual, str.__eq__)
            if missing is not None:
                yield f"{document.relative_to(ROOT)}:{first}: {name} no longer has, in this order: {missing.strip() or '(an empty line)'}"


def long_lines(document):
    inside = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        inside ^= line.startswith("```")
        if len(line) > COLUMNS and not inside and line[:1] not in "|!":
            yield f"{document.relative_to(ROOT)}:{number}: {len(line)} columns; prose has {COLUMNS}"


def main():
    snug = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "snug").resolve()
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", LC_ALL="C.UTF-8", PATH=f"{snug.parent}{os.pathsep}{os.environ['PATH']}")
    tour, wrong = pages()
    ran = 0
    for documents in ([ROOT / "README.md"], [ROOT / "CONTRIBUTING.md"], tour):
        count, problems = run(documents, environment)
        ran += count
        wrong += problems
        for document in documents:
            wrong += [*unknown_targets(document), *broken_links(document), *stale_diffs(document), *long_lines(document)]
    print("\n".join(wrong) if wrong else f"{ran} commands of the documents do what they say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
