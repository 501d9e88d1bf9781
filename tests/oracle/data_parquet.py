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

from data_rows import FLAT, NESTED, SCHEMA, make_rows, narrow, pick


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
