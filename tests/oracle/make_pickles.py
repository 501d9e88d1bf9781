"""Writes tests/golden/pickle: one value with every kind of plain data, as Python's own picklers write it with protocols 2 to 5
(the C pickler and the one in Python write the same), and as text. Run: python tests/oracle/make_pickles.py (Python 3.8 or later, nothing else)."""

import io
import json
import pathlib
import pickle
import pickletools
import sys

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "pickle"


def render(value, open_containers=()):
    """The text that tests/formats/support_pickle.h makes of the same value."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        if abs(value) < 1 << 59:
            return str(value)
        return "L" + pickle.encode_long(value).hex()
    if isinstance(value, float):
        return value.hex() if value == value else "nan"
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, (bytes, bytearray)):
        return "b" + bytes(value).hex()
    if id(value) in open_containers:
        return "<cycle>"
    inside = (*open_containers, id(value))
    if isinstance(value, dict):
        return "{" + ",".join(render(k, inside) + ":" + render(v, inside) for k, v in value.items()) + "}"
    left, right = {list: "[]", tuple: "()", set: "<>", frozenset: "<>"}[type(value)]
    items = [render(item, inside) for item in value]
    return left + ",".join(sorted(items) if left == "<" else items) + right


def value():
    shared = {"filename": "model.py", "line": 7}
    cycle = [1]
    cycle.append(cycle)
    looped = ([],)
    looped[0].append(looped)
    return {
        "none": None,
        "booleans": [True, False],
        "integers": [0, 1, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, -1, -256, 2**47, -(2**55), 2**58],
        "wide": [2**59, -(2**59), 2**63, 2**64 - 1, -(2**64), 2**200, 2 ** (8 * 300)],
        "floats": [0.0, -0.0, 0.1, 1e300, float("inf"), float("-inf"), float("nan")],
        "texts": ["", "plain", "Grüße", "日本", "\U0001f600", "x" * 300],
        "bytes": [b"", b"\x00\xff", b"y" * 300],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "lists": [[], [1], [[[]]], [7] * 2100],
        "dicts": [{}, {1: 2}, {"a": {"b": (None,)}}, {i: None for i in range(1100)}],
        "sets": [set(), {1, 2, 3}, frozenset({"a"}), frozenset()],
        "shared": [shared, shared, {"again": shared}],
        "cycle": cycle,
        "looped": looped,
    }


def plain_data(protocol, wanted):
    """Before protocol 4 sets, and before protocol 3 bytes, are calls: left out."""
    if protocol < 4:
        wanted = {key: item for key, item in wanted.items() if key != "sets"}
    if protocol < 3:
        wanted = {key: item for key, item in wanted.items() if key != "bytes"}
    if protocol == 5:
        wanted = {**wanted, "bytearray": bytearray(b"mutable")}
    return wanted


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    texts = {"made_by": f"Python {sys.version.split()[0]}"}
    seen = set()
    for protocol in range(2, 6):
        data = plain_data(protocol, value())
        texts[str(protocol)] = render(data)
        fast = pickle.dumps(data, protocol)
        slow = io.BytesIO()
        pickle._Pickler(slow, protocol).dump(data)
        assert render(pickle.loads(fast)) == render(data)
        (OUT / f"values_{protocol}.pickle").write_bytes(fast)
        assert slow.getvalue() == fast
        seen |= {opcode.name for opcode, _, _ in pickletools.genops(fast)}
    texts["opcodes"] = " ".join(sorted(seen))
    (OUT / "values.json").write_text(json.dumps(texts, ensure_ascii=False, indent=1) + "\n")


main()
