"""Rows of every shape that data files can have, drawn from a fixed seed, and their schema: for data_parquet.py and data_arrow.py."""

import pyarrow as pa

MESSAGE = pa.struct([("role", pa.string()), ("content", pa.string())])
CALL = pa.struct([("name", pa.string()), ("arguments", pa.map_(pa.string(), pa.string()))])
RICH = pa.struct([("role", pa.string()), ("content", pa.string()), ("weight", pa.int64()),
                  ("tool_calls", pa.list_(pa.struct([("type", pa.string()), ("function", CALL)])))])
SCHEMA = pa.schema([
    ("text", pa.string()), ("id", pa.int64()), ("small", pa.int32()), ("u32", pa.uint32()), ("u8", pa.uint8()), ("half", pa.float32()),
    ("real", pa.float64()), ("flag", pa.bool_()), ("kind", pa.string()), ("fixed", pa.binary(4)), ("nothing", pa.null()),
    ("messages", pa.list_(MESSAGE)), ("rich", pa.list_(RICH)), ("grid", pa.list_(pa.list_(pa.int64()))), ("tags", pa.list_(pa.string())),
    ("deep", pa.struct([("a", pa.struct([("b", pa.list_(pa.struct([("c", pa.list_(pa.string())), ("d", pa.float64())])))])), ("e", pa.bool_())])),
])
WORDS = ["goat", "owl", "caf\u00e9", "\U0001F600", "", "a \"quoted\" \\ line\nbreak\ttab", "\u4f60\u597d", "x" * 300]


def draw(state, n):
    state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state[0] >> 33) % n


def row(i, state, nulls):
    def maybe(value):
        return None if nulls and draw(state, 5) == 0 else value

    def word():
        return WORDS[draw(state, len(WORDS))]

    def items(make, most=4):
        return maybe([make() for _ in range(draw(state, most))])

    def message():
        return maybe({"role": maybe(["user", "assistant", "system"][draw(state, 3)]), "content": maybe(word() * draw(state, 3))})

    def call():
        return maybe({"type": maybe("function"), "function": maybe({"name": maybe(word()), "arguments": maybe(
            [(f"k{k}", maybe(word())) for k in range(draw(state, 3))])})})

    def rich():
        return maybe({"role": "assistant", "content": maybe(word()), "weight": maybe(draw(state, 2)), "tool_calls": items(call, 3)})

    def deep():
        return maybe({"a": maybe({"b": items(lambda: maybe({"c": items(lambda: maybe(word())), "d": maybe(draw(state, 9) / 4)}), 3)}),
                      "e": maybe(draw(state, 2) == 0)})

    return {"text": maybe(word() * (1 + draw(state, 3)) + str(i)), "id": maybe((draw(state, 2**31) - 2**30) * 2**32 + i),
            "small": maybe(draw(state, 2**31) - 2**30), "u32": maybe(2**32 - 1 - draw(state, 1000)), "u8": maybe(draw(state, 256)),
            "half": maybe(draw(state, 1000) / 8), "real": maybe(draw(state, 10**6) / 16 - 9.5), "flag": maybe(draw(state, 2) == 0),
            "kind": maybe(["alpha", "beta", "gamma"][draw(state, 3)]), "fixed": maybe(b"%04d" % draw(state, 9999)), "nothing": None,
            "messages": items(message), "rich": items(rich, 3), "grid": items(lambda: items(lambda: maybe(draw(state, 99))), 3),
            "tags": items(lambda: maybe(word()), 5), "deep": deep()}


def make_rows(count, nulls, seed=1):
    state = [seed]
    return [row(i, state, nulls) for i in range(count)]


def narrow(names):
    return pa.schema([SCHEMA.field(n) for n in names])


def pick(rows, names):
    return [{n: r[n] for n in names} for r in rows]


NESTED = ["text", "messages", "rich", "deep", "grid", "tags"]
FLAT = ["text", "id", "small", "half", "real", "flag", "kind"]
