#!/usr/bin/env python3
"""Parquet files of many writers and shapes, each with its rows as pyarrow reads them, one JSON object a line.

    pip install pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0 fastparquet==2026.9.0 pandas==3.1.1
    python tests/oracle/data_parquet.py tests/golden/data/parquet           # the few small files that are committed
    python tests/oracle/data_parquet.py DIRECTORY --all                     # the whole matrix, hundreds of files

The test ParquetMatrix (tests/data/parquet_reader_test.cpp) compares every FILE.parquet with FILE.jsonl: in the golden directory, and
in the directory that SNUG_PARQUET_MATRIX names. Maps are written as objects, as snug reads them.
"""

import itertools
import json
import pathlib
import sys

import duckdb
import fastparquet
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

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


def plain(value, type_):
    """What snug's reader gives for a value of pyarrow's to_pylist."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {key: plain(item, type_.item_type) for key, item in value}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return [plain(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return {field.name: plain(value[field.name], field.type) for field in type_}
    return value.decode() if isinstance(value, bytes) else value


def write_expected(path):
    table = pq.read_table(path, partitioning=None)
    with open(path.with_suffix(".jsonl"), "w", encoding="utf-8") as out:
        for item in table.to_pylist():
            out.write(json.dumps({f.name: plain(item[f.name], f.type) for f in table.schema}, ensure_ascii=False) + "\n")


def with_pyarrow(path, rows, schema=SCHEMA, **options):
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, **options)


def narrow(names):
    return pa.schema([SCHEMA.field(n) for n in names])


def pick(rows, names):
    return [{n: r[n] for n in names} for r in rows]


NESTED = ["text", "messages", "rich", "deep", "grid", "tags"]
FLAT = ["text", "id", "small", "half", "real", "flag", "kind"]
# Encodings that pyarrow writes on request, and the columns that can have them.
ENCODINGS = {
    "delta": {"id": "DELTA_BINARY_PACKED", "small": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "kind": "DELTA_LENGTH_BYTE_ARRAY",
              "flag": "RLE", "half": "BYTE_STREAM_SPLIT", "real": "BYTE_STREAM_SPLIT"},
    "split": {"id": "BYTE_STREAM_SPLIT", "small": "BYTE_STREAM_SPLIT", "text": "DELTA_LENGTH_BYTE_ARRAY", "kind": "DELTA_BYTE_ARRAY",
              "flag": "PLAIN", "half": "PLAIN", "real": "PLAIN"},
}


def golden(directory):
    few = make_rows(12, True)
    with_pyarrow(directory / "pyarrow_snappy.parquet", few, compression="snappy", row_group_size=5, store_schema=False)
    with_pyarrow(directory / "pyarrow_v2_zstd.parquet", pick(few, NESTED), narrow(NESTED), compression="zstd", data_page_version="2.0",
                 store_schema=False, write_page_checksum=True)
    with_pyarrow(directory / "pyarrow_legacy_list.parquet", pick(few, ["messages", "tags"]), narrow(["messages", "tags"]), compression="none",
                 use_compliant_nested_type=False, use_dictionary=False, store_schema=False)
    with_pyarrow(directory / "pyarrow_delta.parquet", pick(make_rows(150, True), FLAT), narrow(FLAT), compression="gzip", use_dictionary=False,
                 column_encoding=ENCODINGS["delta"], data_page_size=400, store_schema=False)
    polars_file(directory / "polars.parquet", few, "zstd")
    duckdb_file(directory / "duckdb.parquet", few, "snappy", "V1")
    fastparquet_file(directory / "fastparquet.parquet", few, "GZIP")


def polars_file(path, rows, compression, **options):
    names = ["text", "id", "flag", "real", "messages", "grid", "tags", "deep"]
    polars.from_arrow(pa.Table.from_pylist(pick(rows, names), schema=narrow(names))).write_parquet(path, compression=compression, **options)


def duckdb_file(path, rows, compression, version, row_group=122880):
    names = ["text", "id", "small", "flag", "real", "messages", "rich", "grid", "tags", "deep"]
    rows_ = pa.Table.from_pylist(pick(rows, names), schema=narrow(names))  # noqa: F841: DuckDB finds it by name
    duckdb.execute(f"COPY (SELECT * FROM rows_) TO '{path}' (FORMAT parquet, COMPRESSION {compression}, PARQUET_VERSION {version}, "
                   f"ROW_GROUP_SIZE {row_group})")


def fastparquet_file(path, rows, compression):
    frame = pandas.DataFrame({"text": [r["text"] or "" for r in rows], "kind": pandas.Series([r["kind"] for r in rows], dtype=object),
                              "id": [r["id"] or 0 for r in rows], "real": [r["real"] or 0.0 for r in rows],
                              "flag": [bool(r["flag"]) for r in rows]})
    fastparquet.write(str(path), frame, compression=compression, object_encoding="utf8", write_index=False)


def matrix(directory):
    number = itertools.count()

    def path(name):
        return directory / f"{next(number):03d}_{name}.parquet"

    for nulls in (False, True):
        rows = make_rows(700, nulls, 7)
        for codec, version, dictionary, group, compliant in itertools.product(
                ("none", "snappy", "gzip", "zstd"), ("1.0", "2.0"), (True, False), (700, 90), (True, False)):
            with_pyarrow(path(f"pyarrow_{codec}_{version}_{dictionary}_{group}"), rows, compression=codec, data_page_version=version,
                         use_dictionary=dictionary, row_group_size=group, use_compliant_nested_type=compliant, data_page_size=3000,
                         dictionary_pagesize_limit=2000, write_page_checksum=group == 90)
        for name, encoding in ENCODINGS.items():
            for version, codec in itertools.product(("1.0", "2.0"), ("none", "snappy", "zstd")):
                with_pyarrow(path(f"pyarrow_{name}_{version}_{codec}"), pick(rows, FLAT), narrow(FLAT), use_dictionary=False,
                             column_encoding=encoding, data_page_version=version, compression=codec, data_page_size=2000)
        for codec in ("uncompressed", "snappy", "gzip", "zstd"):
            polars_file(path(f"polars_{codec}"), rows, codec)
            polars_file(path(f"polars_{codec}_small"), rows, codec, row_group_size=64, data_page_size=500)
        for codec, version in itertools.product(("uncompressed", "snappy", "gzip", "zstd"), ("V1", "V2")):
            duckdb_file(path(f"duckdb_{codec}_{version}"), rows * 4, codec, version, 2048)
        for codec in ("UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD"):
            fastparquet_file(path(f"fastparquet_{codec}"), rows, codec)
        required = pa.schema([pa.field("text", pa.string(), nullable=False), pa.field("tags", pa.list_(pa.field("item", pa.string(), nullable=False)), nullable=False),
                              pa.field("m", pa.list_(pa.field("item", pa.struct([pa.field("role", pa.string(), nullable=False)]), nullable=False)))])
        with_pyarrow(path("pyarrow_required"), [{"text": r["text"] or "", "tags": [t or "" for t in r["tags"] or []], "m": [{"role": str(i)}] * (i % 3)}
                                                for i, r in enumerate(rows)], required)
    large = pa.schema([("text", pa.large_string()), ("tags", pa.large_list(pa.large_string())), ("pair", pa.list_(pa.int64(), 2))])
    with_pyarrow(path("pyarrow_large"), [{"text": "a" * i, "tags": ["b"] * (i % 4), "pair": [i, -i]} for i in range(300)], large)
    with_pyarrow(path("pyarrow_one_big"), [{"text": "w" * 3_000_000}, {"text": "\u00e9" * 1_000_000}], narrow(["text"]), compression="zstd")
    with_pyarrow(path("pyarrow_empty"), [], narrow(["text", "messages"]))
    with_pyarrow(path("pyarrow_long_list"), [{"tags": [str(k) for k in range(20_000)]}, {"tags": []}, {"tags": None}], narrow(["tags"]), data_page_size=1000)
    pandas.DataFrame({"text": ["a", None, "c"], "messages": [[{"role": "user", "content": "x"}], [], None]}).to_parquet(path("pandas"))
    try:
        import datasets
        datasets.Dataset.from_list([{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": None}]}, {"messages": []}]).to_parquet(
            path("datasets"))
    except ImportError:
        pass


directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
(matrix if "--all" in sys.argv else golden)(directory)
for file in sorted(directory.glob("*.parquet")):
    write_expected(file)
print(sum(f.stat().st_size for f in directory.iterdir()), "bytes in", len(list(directory.iterdir())), "files")
