#!/usr/bin/env python3
"""What a figure was measured on: machine.py prints a short name for file names, machine.py --long a few lines for a report."""

import os
import re
import subprocess
import sys


def cpu_field(name: str) -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.split(":")[0].strip() == name:
                return line.split(":", 1)[1].strip()
    return ""


def cores() -> int:
    return len(os.sched_getaffinity(0))


def instructions() -> str:
    """The widest that matters for products of matrices."""
    flags = cpu_field("flags").split()
    return next((name for flag, name in (("amx_tile", "amx"), ("avx512f", "avx512"), ("avx2", "avx2")) if flag in flags), "")


def short_name() -> str:
    """Such as xeon-amx-2cores: no host name."""
    model = re.sub(r"\(R\)|\(TM\)|@.*|\b(Intel|CPU|Processor|[0-9]+-Core)\b", " ", cpu_field("model name"), flags=re.IGNORECASE)
    words = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-") or "cpu"
    return "-".join(filter(None, (words, instructions(), f"{cores()}cores")))


def version_of(*command: str) -> str:
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return output.strip().splitlines()[0] if output.strip() else "unknown"


def description(snug: str) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = version_of("git", "describe", "--always", "--dirty", "--abbrev=10")
    return "\n".join((
        f"- machine: {cpu_field('model name')}, {cores()} cores, {instructions() or 'no AVX2'}, {memory:.1f} GiB, "
        f"Linux {os.uname().release.partition('-')[0]}",
        f"- load average when the report was written: {os.getloadavg()[0]:.2f}",
        f"- {version_of(snug, '--version')}, commit {commit}, {version_of('c++', '--version')}",
    ))


if __name__ == "__main__":
    print(description(os.environ.get("SNUG", "build/snug")) if "--long" in sys.argv else short_name())
