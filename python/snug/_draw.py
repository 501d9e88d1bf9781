"""Answers in a notebook: HTML with a drawing that is whole in itself.

Readable on light and on dark pages (lines and text take the page's colour) and without colour: parts differ by their
hatching, and stand with the same hatching and their bytes in the list below.
"""

from __future__ import annotations

import html
import itertools
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from ._explanations import Explanation
    from ._fits import Fit
    from ._plans import Plan, PyTorchPlan
    from ._textbooks import Textbook

Part = Tuple[str, int]  # name, bytes

_WIDTH, _HEIGHT = 640, 22
_COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#bbbbbb",
    "#ee7733",
    "#009988",
    "#8866cc",
    "#666666",
)
# Lines of a tile of 8 x 8, one way of hatching for each colour; "" is plain.
_HATCHES = (
    "",
    "M0 8L8 0",
    "M4 0V8",
    "M0 4H8",
    "M0 0L8 8",
    "M0 8L8 0M0 0L8 8",
    "M4 0V8M0 4H8",
    "M2 2h1M6 6h1",
    "M0 2H8M0 6H8",
    "M2 0V8M6 0V8",
    "M0 4L4 0L8 4M0 8L4 4L8 8",
)
# Each part has one hatching in all drawings, and no two of one engine the same.
_PLACES = {
    "weights": 0,
    "needed": 0,
    "adapters": 1,
    "gradients": 2,
    "optimizer": 3,
    "activations": 4,
    "temporaries": 5,
    "comm": 6,
    "unused by the allocator": 6,
    "workspace": 7,
    "runtime": 8,
    "driver's context": 8,
    "batch": 9,
    "context, at most": 10,
}
_numbers = itertools.count(1)


def size(count: Optional[float]) -> str:
    """Bytes in binary units, three digits, as the program writes them."""
    if count is None:
        return "–"
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            break
        value /= 1024
    if unit == "B":
        return f"{value:.0f} B"
    return f"{value:.{2 if value < 10 else 1}f} {unit}"


def _patterns(prefix: str, parts: Sequence[Part]) -> str:
    made = []
    for index, (name, _) in enumerate(parts):
        at = _PLACES.get(name, 0)
        lines = (
            f'<path d="{_HATCHES[at]}" stroke="#000" stroke-opacity=".55" stroke-width="1.2" fill="none"/>'
            if _HATCHES[at]
            else ""
        )
        made.append(
            f'<pattern id="{prefix}{index}" width="8" height="8" patternUnits="userSpaceOnUse">'
            f'<rect width="8" height="8" fill="{_COLOURS[at]}"/>{lines}</pattern>'
        )
    return "".join(made)


def _box(x: float, width: float, fill: str, title: str, y: int = 18, height: int = _HEIGHT) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0):.1f}" height="{height}" fill="{fill}" stroke="currentColor" '
        f'stroke-width=".6"><title>{html.escape(title)}</title></rect>'
    )


def _budget(at: float, text: str) -> str:
    anchor = "end" if at > _WIDTH / 2 else "start"
    return (
        f'<path d="M{at:.1f} 12V{18 + _HEIGHT + 6}" stroke="currentColor" stroke-width="2" stroke-dasharray="4 2"/>'
        f'<text x="{at + (-4 if anchor == "end" else 4):.1f}" y="10" font-size="11" fill="currentColor" '
        f'text-anchor="{anchor}">{html.escape(text)}</text>'
    )


def _legend(prefix: str, parts: Sequence[Part]) -> str:
    items = "".join(
        '<span style="display:inline-block;margin-right:1.2em;white-space:nowrap"><svg width="14" height="14" '
        f'style="vertical-align:-2px"><rect width="14" height="14" fill="url(#{prefix}{index})" stroke="currentColor" '
        f'stroke-width=".6"/></svg> {html.escape(name)} {size(count)}</span>'
        for index, (name, count) in enumerate(parts)
    )
    return f'<div style="font-size:12px;line-height:1.7;max-width:{_WIDTH}px">{items}</div>'


def bar(parts: Sequence[Part], budget: Optional[int], label: str) -> str:
    """Parts one after the other, to scale, against the budget."""
    parts = [part for part in parts if part[1] > 0]
    prefix = f"snug{next(_numbers)}-"
    total = sum(count for _, count in parts)
    scale = (_WIDTH - 2) / (max(total, budget or 0) or 1)
    x, boxes = 1.0, []
    for index, (name, count) in enumerate(parts):
        boxes.append(_box(x, count * scale, f"url(#{prefix}{index})", f"{name}: {size(count)} ({count} bytes)"))
        x += count * scale
    mark = "" if budget is None else _budget(1 + budget * scale, f"budget {size(budget)}")
    return (
        f'<svg viewBox="0 0 {_WIDTH} {18 + _HEIGHT + 8}" width="{_WIDTH}" style="max-width:100%;height:auto" role="img" '
        f'aria-label="{html.escape(label)}"><defs>{_patterns(prefix, parts)}</defs>{"".join(boxes)}{mark}</svg>'
        + _legend(prefix, parts)
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cell = 'style="text-align:left;padding:2px 10px 2px 0;border-bottom:1px solid currentColor;background:none;color:inherit"'
    lines = ["<tr>" + "".join(f"<th {cell}>{html.escape(text)}</th>" for text in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td {cell}>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows]
    return f'<table style="border-collapse:collapse;font-size:12px;background:none;color:inherit">{"".join(lines)}</table>'


def _page(title: str, *pieces: str) -> str:
    body = "".join(pieces)
    return (
        '<div style="font-family:sans-serif;font-size:13px"><div style="font-weight:bold;margin:2px'
        f' 0">{html.escape(title)}</div>{body}</div>'
    )


def _said(messages: str) -> str:
    lines = [line for line in messages.splitlines() if line]
    return "".join(f'<div style="font-size:12px;font-style:italic">{html.escape(line)}</div>' for line in lines)


def _list(lines: Sequence[str]) -> str:
    return f'<ol style="margin:4px 0">{"".join(f"<li>{html.escape(line)}</li>" for line in lines)}</ol>' if lines else ""


def _own(breakdown: Mapping[str, int]) -> List[Part]:
    return [(name, count) for name, count in breakdown.items() if count]


def _in_pytorch(allocated: int, reserved: int, low: int, high: int, breakdown: Mapping[str, int]) -> List[Part]:
    """What tensors hold, what PyTorch keeps beside it, the driver's context, and how far that may be more."""
    parts = _own(breakdown)
    parts += [
        ("unused by the allocator", reserved - allocated),
        ("driver's context", low - reserved),
        ("context, at most", high - low),
    ]
    return parts


def _verdict(fits: Optional[bool]) -> str:
    return {True: "✓ fits", False: "✗ does not fit", None: "may fit"}[fits]


def _plan_parts(plan: "Plan", pytorch: "Optional[PyTorchPlan]") -> List[Part]:
    if pytorch is None or plan.engine == "snug":
        return _own(plan.breakdown)
    device = pytorch.device_bytes
    return _in_pytorch(pytorch.allocated_bytes, pytorch.reserved_bytes, device.low, device.high, pytorch.breakdown)


def plan(of: "Plan") -> str:
    """The peak by what it is for, against the budget, of the engine whose verdict it is."""
    who = "PyTorch" if of.engine == "pytorch" else "snug"
    stage = of.pytorch.phase if of.pytorch is not None and of.engine == "pytorch" else of.peak_stage
    budget = "" if of.budget_bytes is None else f" of {size(of.budget_bytes)}"
    where = f", peak in {stage}" if stage else ""
    device = f" on {of.device.name}" if of.device is not None else ""
    least = "at least " if of.is_least else ""
    title = f"{_verdict(of.fits)}: {least}{size(of.needed_bytes)}{budget} – {of.model.name}{device}, {who}{where}"
    uncovered = f"PyTorch: not known: {of.pytorch_not_covered}\n" if of.pytorch_not_covered else ""
    return _page(title, bar(_plan_parts(of, of.pytorch), of.budget_bytes, title), _said(uncovered + of.messages))


def _settings(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in settings.items()) or "as it is"


def fit(of: "Fit") -> str:
    """The best recipe's peak against the budget, and the recipes that fit."""
    methods = of.pytorch.methods if of.pytorch is not None else of.methods
    best = of.best
    who = "PyTorch" if of.engine == "pytorch" else "snug"
    if best is None:
        title = f"✗ nothing fits {size(of.budget_bytes)} of {of.device.name} – {of.model.name}, {who}"
        return _page(title, _said(of.messages))
    title = f"✓ {of.method}: {size(best.needed_bytes)} of {size(of.budget_bytes)} – {of.model.name} on {of.device.name}, {who}"
    parts: List[Part] = [("needed", best.needed_bytes)]
    if of.pytorch is not None:
        there = of.pytorch
        parts = _in_pytorch(
            there.allocated_bytes, there.reserved_bytes, there.device_bytes.low, there.device_bytes.high, there.breakdown
        )
    rows = [
        (method.name, size(each.needed_bytes), _settings(each.settings), ", ".join(each.given_up) or "–")
        for method in methods
        for each in method.front[:3]
    ]
    table = _table(("method", "memory", "changes", "gives up"), rows)
    return _page(title, bar(parts, of.budget_bytes, title), table, _said(of.messages))


def explanation(of: "Explanation") -> str:
    """The answer, its sums, and what to change."""
    advice = [f"{each.change}: {each.effect}" if each.effect else each.change for each in of.advice]
    changes = of.recipe.diff if of.recipe is not None and of.recipe.diff else ""
    diff = f'<pre style="font-size:12px;background:none;color:inherit">{html.escape(changes)}</pre>' if changes else ""
    return _page(of.answer, _said("\n".join(of.arithmetic)), _list(advice), diff, _said(of.messages))


def textbook(of: "Textbook") -> str:
    """Each rule beside what is planned."""
    rows = [
        (name, size(row.bytes), size(row.snug_bytes), row.rule + (f"; {row.why}" if row.why else ""))
        for name, row in of.rows.items()
    ]
    rows.append(("total", size(of.total_bytes), "", ""))
    return _page(f"{of.parameters:,} parameters by the textbook", _table(("", "rule", "snug", "how"), rows))
