"""Published rows of measured_peaks.csv: what each measured, in bytes, and how finely it was printed. Knows no source and no planner.

Tier A: bytes, one GPU, versions known, rows of one length. Tier B: bytes, but several GPUs, or reserved, or lengths that vary. Tier C: what was
rounded or leaves settings open."""

import csv
import dataclasses
import re

UNITS = {"B": 1, "MB": 10**6, "MIB": 2**20, "M": 2**20, "GB": 10**9, "G": 10**9, "GIB": 2**30}


@dataclasses.dataclass
class Ask:
    """One reading of a row: a recipe for `snug plan`."""
    config: dict  # of the model
    keys: dict
    flags: list


@dataclasses.dataclass
class Question:
    line: int  # of the file
    source: str
    trainer: str
    model: str
    method: str
    gpus: int = 1
    tier: str = "C"
    metric: str = "unknown"  # allocated, reserved, device or unknown: what was measured
    least: float = 0.0  # bytes that the printed figure can stand for
    most: float = 0.0
    gb_may_be_gib: bool = False  # the figure was written by hand as "G" or "GB": nvidia-smi counts MiB
    out_of_memory: bool = False
    asks: list = dataclasses.field(default_factory=list)  # more than one where the row leaves a setting open
    card: str = ""
    stack: str = ""
    left_out: str = ""  # why the row is not asked

    @property
    def bytes(self):
        return (self.least + self.most) / 2


def read(path):
    with open(path, newline="") as file:
        return list(enumerate(csv.DictReader(file), 2))


def count(text):
    """The first number of a text: "2 (micro)" is 2; 0 for none."""
    found = re.search(r"\d[\d,]*", text)
    return int(found[0].replace(",", "")) if found else 0


def gpus_of(text):
    found = re.match(r"\s*(\d+)\s*(?:x|\*|GPU)", text) or re.search(r"x\s*(\d+)\s*$", text)
    return int(found[1]) if found else 1


def printed(text, binary=False):
    """(least, most) bytes that a printed figure can stand for, by its last digit; `binary`: GB that are GiB."""
    found = re.search(r"~?\s*([\d.]+)\s*([KMG]i?B?|B)\b", text)
    if not found:
        return 0.0, 0.0
    unit = found[2].upper()
    scale = UNITS.get(unit, 1)
    if binary and scale in (10**9, 10**6):
        scale = 2**30 if scale == 10**9 else 2**20
    half = 0 if unit == "B" else 0.5 * 10 ** -len(found[1].partition(".")[2])
    return (float(found[1]) - half) * scale, (float(found[1]) + half) * scale


def states_batch_and_length(row):
    return count(row["batch"]) > 0 and count(row["seq"]) > 0
