"""The memory of a case's card, chosen by rule from a run on a card that is large enough and from one with the cure.

What is chosen is the room that is left for PyTorch; a row is a stretch of the run as probe.py saw it."""

LEAST_GAP = 6 << 20
SAME = 0.995


PHASES = {"load": ("load", "between"), "forward": ("forward", "between"), "loss": ("forward", "between"), "save": ("save", "between")}  # of a stage


def failing_row(rows, stage, held, forward=None):
    """The first row of the stage, and of that forward if it is known, that takes at least what was held and asked for when memory ran out.

    Blocks are cut otherwise on a card that is full, so what is held there differs by a little."""
    for i, row in enumerate(rows):
        if row["peak"] >= SAME * held and row["phase"] in PHASES.get(stage, (stage,)) and forward in (None, row["forwards"]):
            return i
    return None


def _gaps(rows, cured_bytes, phases, key):
    """(lowest, highest, row) of rooms with which a row of `phases` is the first that fails, by the peaks before of `key`."""
    low, gaps = cured_bytes, []
    for i, row in enumerate(rows):
        if row["phase"] in phases and row["peak"] - low > LEAST_GAP:
            gaps.append((low, row["peak"], i))
        low = max(low, row[key])
    return gaps


def _bounds(cured):
    """What the room shall surely hold, or may: what came before by its key, and the run with the cure."""
    return (("peak_reserved", cured.peak_reserved), ("peak", cured.peak_reserved), ("peak", cured.peak))


def short(rng, base, cured, phases):
    """Room for what came before, and for the run with the cure, but not for one stretch of the right phase."""
    for key, cured_bytes in _bounds(cured):
        gaps = _gaps(base.rows, cured_bytes, phases, key)
        if gaps:
            low, high, _ = max(gaps, key=lambda gap: gap[1] - gap[0])
            return int(low + (high - low) * rng.uniform(0.15, 0.85))
    return None


def growth(rng, base, cured, phases):
    """A room that some steps fit into, and what they leave behind then fills."""
    for key, cured_bytes in _bounds(cured):
        gaps = [gap for gap in _gaps(base.rows, cured_bytes, phases, key) if base.rows[gap[2]]["forwards"] >= 4]
        if gaps:
            low, high, _ = rng.choice(gaps)
            return int(low + (high - low) * rng.uniform(0.3, 0.9))
    return None


def states(rng, base, cured, phases):
    """Room for less than what the optimizer's first step leaves behind."""
    low = cured.peak_reserved
    for row in base.rows:
        if row["phase"] == "optimizer":
            return int(low + (row["allocated"] - low) * rng.uniform(0.15, 0.9)) if row["allocated"] - low > LEAST_GAP else None
        low = max(low, row["peak_reserved"])
    return None


def temporaries(rng, base, cured, phases):
    """Room for what the optimizer's first step leaves behind, but not for what it takes meanwhile."""
    low = cured.peak_reserved
    for row in base.rows:
        if row["phase"] == "optimizer":
            low = max(low, row["allocated"])
            return int(low + (row["peak"] - low) * rng.uniform(0.15, 0.85)) if row["peak"] - low > LEAST_GAP else None
        low = max(low, row["peak_reserved"])
    return None


def part(rng, base, cured, phases):
    """Some part of what the run takes."""
    return int(base.peak * rng.uniform(0.4, 0.9))


def unit_of(rows, i, stage, passes=False):
    """Rows of the step that row i is in, from i on: of what is loaded or saved there, of one batch of an evaluation, of one token of a generation.

    `passes`: a step is one forward pass and what follows it, though the optimizer comes after several."""
    phase = rows[i]["phase"]
    if stage in ("load", "save"):
        same = lambda row: row["phase"] in ("load", "save", "between") and row["forwards"] == rows[i]["forwards"]
    elif not passes and phase not in ("evaluation", "generate") and any(row["phase"] == "optimizer" and row["step"] == rows[i]["step"] for row in rows[i:]):
        same = lambda row: row["step"] == rows[i]["step"]
    else:
        same = lambda row: row["forwards"] == rows[i]["forwards"]
    end = i
    while end < len(rows) and same(rows[end]):
        end += 1
    return rows[i:end]


def growth_bytes(rows, phases):
    """What a step leaves behind, as it was asked for: the most common difference of what is held after the same phase of neighbouring steps.
    Blocks are larger, by what the allocator did not split off, which differs from card to card."""
    ends = {}
    for row in rows:
        if row["phase"] in phases:
            ends[row["forwards"]] = row["requested"]
    held = [ends[key] for key in sorted(ends)][1:]
    steps = [after - before for before, after in zip(held, held[1:])]
    return max(set(steps), key=steps.count) if steps else None
