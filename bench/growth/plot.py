#!/usr/bin/env python3
"""Draws bench/growth.sh's figures as one SVG: plot.py FIGURES.json. Memory above, time below, one column for each axis, log-log.

A line is what the plan says, a dot what was measured. For time, the plan's line is its GFLOP times the axis's median time of one.
"""

import json
import math
import statistics
import sys
from dataclasses import dataclass

PANEL_W, PANEL_H = 288, 208
LEFT, TOP, GAP_X, GAP_Y = 72, 96, 64, 78
WIDTH, HEIGHT = LEFT + 3 * PANEL_W + 2 * GAP_X + 32, TOP + 2 * PANEL_H + GAP_Y + 62
INK, SOFT, GRID, FRAME = "#1c2430", "#667085", "#eaedf1", "#c5ccd6"
MEMORY, TIME = "#2f6fde", "#d9622b"


@dataclass
class Scale:
    """Log scale from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (self.end - self.start) * (math.log(value / self.low) / math.log(self.high / self.low))


def text(x: float, y: float, words: str, size: float = 12, colour: str = INK, anchor: str = "start", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{extra}>{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 1, extra: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{extra}/>'


def ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 times powers of ten; powers alone where that would crowd."""
    leads = (1, 2, 5) if high / low < 200 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [lead * 10.0**power for power in powers for lead in leads if low <= lead * 10.0**power <= high]


def number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 1 else f"{value:g}"


def raised(letter: str, power: float) -> str:
    """The letter with its exponent; SVG viewers differ on baseline-shift, all know dy."""
    shown = f"{power:.2f}".replace("-", "−")
    return f'<tspan font-style="italic">{letter}</tspan><tspan dy="-4.5" font-size="9.5">{shown}</tspan><tspan dy="4.5">&#8203;</tspan>'


@dataclass
class Row:
    """One quantity: for each axis its planned and measured values, and their exponents."""

    unit: str
    colour: str
    planned: list[list[float]]
    measured: list[list[float]]
    powers: list[tuple[float, float]]

    def range(self) -> tuple[float, float]:
        """The same for all axes, so that heights compare."""
        values = [value for axis in self.planned + self.measured for value in axis]
        return min(values) / 1.35, max(values) * 1.9


def panel(axis: dict, column: int, number_of_row: int, row: Row) -> list[str]:
    x0, y0 = LEFT + column * (PANEL_W + GAP_X), TOP + number_of_row * (PANEL_H + GAP_Y)
    planned, measured, powers, colour = row.planned[column], row.measured[column], row.powers[column], row.colour
    x = Scale(axis["x"][0] / 1.25, axis["x"][-1] * 1.25, x0, x0 + PANEL_W)
    y = Scale(*row.range(), y0 + PANEL_H, y0)
    parts = [f'<rect x="{x0}" y="{y0}" width="{PANEL_W}" height="{PANEL_H}" fill="#ffffff"/>']
    for value in ticks(y.low, y.high):
        parts += [line(x0, y(value), x0 + PANEL_W, y(value), GRID), text(x0 - 8, y(value) + 4, number(value), 11, SOFT, "end")]
    for value in axis["x"]:
        parts += [line(x(value), y0, x(value), y0 + PANEL_H, GRID), text(x(value), y0 + PANEL_H + 17, number(value), 11, SOFT, "middle")]
    parts.append(f'<rect x="{x0}" y="{y0}" width="{PANEL_W}" height="{PANEL_H}" fill="none" stroke="{FRAME}"/>')
    path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in zip(axis["x"], planned))
    parts.append(f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.6" stroke-linejoin="round"/>')
    parts += [f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="4.4" fill="{colour}" stroke="#ffffff" stroke-width="1.4"/>'
              for a, b in zip(axis["x"], measured)]
    parts.append(text(x0 + 12, y0 + 22, f"planned {raised(axis['letter'], powers[0])}", 12, INK))
    parts.append(text(x0 + 12, y0 + 40, f"measured {raised(axis['letter'], powers[1])}", 12, colour))
    label = f"{axis['title']} <tspan font-style=\"italic\">{axis['letter']}</tspan>"
    parts.append(text(x0 + PANEL_W / 2, y0 + PANEL_H + 38, label, 12.5, INK, "middle"))
    if column == 0:
        parts.append(text(x0, y0 - 10, row.unit, 12.5, INK, "start", ' font-weight="600"'))
    return parts


def legend() -> list[str]:
    x, y = WIDTH - 32, 40
    return [text(x, y, "measured", 12.5, INK, "end"),
            f'<circle cx="{x - 76}" cy="{y - 4}" r="4.4" fill="{TIME}"/>', f'<circle cx="{x - 90}" cy="{y - 4}" r="4.4" fill="{MEMORY}"/>',
            text(x - 116, y, "planned", 12.5, INK, "end"), line(x - 194, y - 4, x - 170, y - 4, INK, 1.6)]


def memory_row(axes: list[dict]) -> Row:
    planned, measured = ([[value / 2**20 for value in axis[name]] for axis in axes] for name in ("planned", "measured"))
    return Row("peak memory, MiB", MEMORY, planned, measured, [(a["fits"]["planned"][0], a["fits"]["measured"][0]) for a in axes])


def time_row(axes: list[dict]) -> Row:
    paces = [statistics.median(seconds / flops for seconds, flops in zip(axis["seconds"], axis["flops"])) for axis in axes]
    planned = [[1e3 * flops * pace for flops in axis["flops"]] for axis, pace in zip(axes, paces)]
    measured = [[1e3 * seconds for seconds in axis["seconds"]] for axis in axes]
    return Row("time of a step, ms", TIME, planned, measured, [(a["fits"]["flops"][0], a["fits"]["seconds"][0]) for a in axes])


def draw(axes: list[dict]) -> str:
    parts = [text(LEFT, 34, "Cost as the work grows, planned and measured", 19, INK, "start", ' font-weight="600"'),
             text(LEFT, 55, "Each point is a LoRA run of its own; power laws fitted through all points", 12.5, SOFT)]
    parts += legend()
    rows = [memory_row(axes), time_row(axes)]
    for number_of_row, row in enumerate(rows):
        for column, axis in enumerate(axes):
            parts += panel(axis, column, number_of_row, row)
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif">\n'
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fbfcfd"/>\n{body}\n</svg>\n')


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as figures:
        sys.stdout.write(draw(json.load(figures)))
