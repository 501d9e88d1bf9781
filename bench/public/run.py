#!/usr/bin/env python3
"""Public training programs under `snug measure`, unchanged, with names of models and data that stand in a local cache:
run.py --stacks DIR --mirrors DIR --tokenizers DIR --gsm8k DIR [--snug SNUG] [--only NAME …] [--json FILE] [--table] [--logs DIR]

rows.py says which: of each program its repository, commit and path (or the package that has it), its command, and which models and data
it asks for. STACKS/NAME are virtual environments (rows.py, STACKS, has what to install into each); MIRRORS/OWNER+REPOSITORY/repo are
git directories. Each program runs on H100s until the third step of its optimizer has been done. Prints a line a program; --json FILE
keeps all, and what is in FILE already is kept where it is not run again."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import cache
import rows as table

HERE = pathlib.Path(__file__).resolve().parent
STEPS, SECONDS = 3, 1800


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("stacks", "mirrors", "tokenizers", "gsm8k"):
        p.add_argument("--" + name, type=pathlib.Path, required=True)
    p.add_argument("--snug", default=str(HERE.parent.parent / "build" / "snug"))
    p.add_argument("--only", nargs="*", default=[])
    p.add_argument("--json", type=pathlib.Path)
    p.add_argument("--table", action="store_true", help="at the end, print all that FILE has as a table; --only none runs nothing")
    p.add_argument("--logs", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "snug-public")
    return p.parse_args()


def put_files(row, mirrors, folder):
    """The files of a repository, each as `place: path`; a path that is a folder comes whole."""
    repository, commit = row.get("repository", "@").split("@")
    git = ["git", "--git-dir", str(mirrors / repository.replace("/", "+") / "repo")]
    for place, path in row.get("files", {}).items():
        if path.endswith("/"):
            names = subprocess.run([*git, "ls-tree", "-r", "--name-only", commit, path], check=True, capture_output=True, text=True).stdout.split()
        else:
            names = [path]
        for name in names:
            to = folder / (place + name[len(path):] if path.endswith("/") else place)
            to.parent.mkdir(parents=True, exist_ok=True)
            shown = subprocess.run([*git, "show", f"{commit}:{name}"], capture_output=True)
            if shown.returncode == 0:  # a snapshot may lack its largest files
                to.write_bytes(shown.stdout)


def environment(stack, folder):
    """The stack's own commands first, and no way to the network."""
    return {**os.environ, "PATH": f"{stack / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(stack), "HF_HOME": str(folder / "hf"),
            "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "WANDB_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false",
            "MODELSCOPE_CACHE": str(folder / "modelscope"), "USE_HF": "1", "AXOLOTL_DO_NOT_TRACK": "1", "TRACKIO_DIR": str(folder / "trackio")}


def run(row, a):
    """Measures one program; (exit code, what was measured or nothing, seconds, all that it printed)."""
    with tempfile.TemporaryDirectory(prefix="snug-public-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        for model in row.get("models", []):
            cache.make_model(folder, model, a.tokenizers)
        for data, form in row.get("data", {}).items():
            cache.make_data(folder, data, form, a.gsm8k, row.get("rows", cache.ROWS))
        put_files(row, a.mirrors, folder)
        stack = (a.stacks / row["stack"]).absolute()
        command = [a.snug, "measure", "--gpu", row.get("gpu", "H100-SXM5-80GB"), "--gpus", str(row.get("gpus", 1)), "--steps", str(STEPS),
                   "--json", "measured.json", "--", *shlex.split(row["command"])]
        began, log, code = time.time(), a.logs / f"{row['name']}.log", None
        with open(log, "w") as file, contextlib.suppress(subprocess.TimeoutExpired):
            code = subprocess.run(command, cwd=folder / row.get("in", "."), env={**environment(stack, folder), **row.get("environment", {})},
                                  stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=SECONDS).returncode
        seconds, result = time.time() - began, folder / row.get("in", ".") / "measured.json"
        return code, json.loads(result.read_text())["measured"] if result.exists() else None, round(seconds, 1), log.read_text(errors="replace")


def kept(row, code, measured, seconds, text):
    one = {"name": row["name"], "trainer": row["trainer"], "stack": row["stack"], "gpus": row.get("gpus", 1), "exit_code": code, "seconds": seconds}
    if measured:
        one.update({key: measured[key] for key in ("allocated_bytes", "reserved_bytes", "device_bytes", "phase", "steady_bytes", "host_peak_bytes",
                                                   "refused")}, steps=len(measured["steps"]), versions=measured["stack"])
    if code != 0 or one.get("steps", 0) < STEPS:
        errors = re.findall(r"^(?:\[rank\d\]: *)?((?:[\w.]+\.)?\w*(?:Error|Exception|Refused)\b.*|snug: .*|.*\berror: .*)$", text, re.MULTILINE)
        one["error"] = errors[-1].strip()[:300] if errors else text.strip()[-300:]
    return one


def source_of(row):
    """Where a program comes from, in words."""
    if "source" in row:
        return row["source"]
    repository, commit = row["repository"].split("@")
    return f"{repository.split('/')[1]}@{commit[:8]}, {', '.join(path for path in row['files'].values() if path not in ('data/', 'src/'))}"


def table_of(found):
    """What was measured, as a table in Markdown."""
    titles = ("program", "from", "stack", "cards", "third step", "allocated", "reserved", "peak in", "seconds", "host MiB")
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for row in table.ROWS:
        one = found.get(row["name"])
        if one:
            passed = "yes" if one["exit_code"] == 0 and one.get("steps", 0) >= STEPS else "no"
            lines.append(f"| {row['name']} | {source_of(row)} | {row['stack']} | {row.get('gpus', 1)} | {passed} | {one.get('allocated_bytes', 0):,} | "
                         f"{one.get('reserved_bytes', 0):,} | {one.get('phase')} | {one['seconds']:.0f} | {one.get('host_peak_bytes', 0) / 2**20:.0f} |")
    return "\n".join(lines)


def main():
    a = arguments()
    a.logs.mkdir(parents=True, exist_ok=True)
    a.snug = str(pathlib.Path(a.snug).absolute())
    found = {one["name"]: one for one in json.loads(a.json.read_text())} if a.json and a.json.exists() else {}
    for row in table.ROWS:
        if a.only and not any(re.fullmatch(word, row["name"]) for word in a.only):
            continue
        *outcome, text = run(row, a)
        one = found[row["name"]] = kept(row, *outcome, text)
        print(f"{one['name']:28} code {one['exit_code']}  {one.get('steps', 0)} steps  {one.get('allocated_bytes', 0):>14,} allocated "
              f"{one.get('reserved_bytes', 0):>14,} reserved  {one['seconds']:6.1f} s  {one.get('host_peak_bytes', 0) / 2**20:6.0f} MiB"
              f"  {one.get('error', '')}", flush=True)
        if a.json:
            a.json.write_text(json.dumps([found[row["name"]] for row in table.ROWS if row["name"] in found], indent=1) + "\n")
    if a.table:
        print(table_of(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
