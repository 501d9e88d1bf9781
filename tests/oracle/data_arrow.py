#!/usr/bin/env python3
"""Arrow files of many writers and shapes, and data sets as `datasets` leaves them, each with its rows as pyarrow or `datasets` reads
them, one JSON object a line.

    pip install pyarrow==26.0.1 datasets==5.2.0 polars==2.1.0
    python tests/oracle/data_arrow.py tests/golden/data/arrow             # the few small files that are committed
    python tests/oracle/data_arrow.py DIRECTORY --all                     # the whole matrix, hundreds of files

The test ArrowMatrix (tests/data/arrow_reader_test.cpp) compares every FILE.arrow, and every directory NAME, with FILE.jsonl or
NAME.jsonl: in the golden directory, and in the directory that SNUG_ARROW_MATRIX names. Maps are written as objects, JSON as what it says,
and fields that are null are left out but for `content`, as snug reads them. What stands in `refused` snug must refuse.
"""

import datetime
import itertools
import json
import os
import pathlib
import shutil
import sys
import tempfile

SCRATCH = tempfile.TemporaryDirectory()
os.environ["HF_DATASETS_CACHE"] = SCRATCH.name + "/cache"
os.environ["HF_HUB_OFFLINE"] = "1"

import datasets  # noqa: E402: its cache is told above
import polars  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.feather as feather  # noqa: E402
import pyarrow.ipc as ipc  # noqa: E402

from data_rows import MESSAGE, SCHEMA, make_rows, narrow, pick  # noqa: E402

COLUMNS = [name for name in SCHEMA.names if name != "fixed"]  # bytes are refused here
KINDS = pa.dictionary(pa.int8(), pa.string())
TYPES = pa.schema([("i8", pa.int8()), ("i16", pa.int16()), ("i32", pa.int32()), ("i64", pa.int64()), ("u8", pa.uint8()), ("u16", pa.uint16()),
                   ("u32", pa.uint32()), ("u64", pa.uint64()), ("f16", pa.float16()), ("f32", pa.float32()), ("f64", pa.float64()),
                   ("flag", pa.bool_()), ("nothing", pa.null()), ("large", pa.large_string()), ("many", pa.large_list(pa.large_string())),
                   ("pair", pa.list_(pa.int16(), 2)), ("none", pa.list_(pa.string(), 0)), ("map", pa.map_(pa.string(), pa.bool_()))])
CHAT = [{"messages": [{"role": "user", "content": "caf\u00e9?"}, {"role": "assistant", "content": None, "tool_calls": [
            {"type": "function", "function": {"name": "f", "arguments": {"a": 1, "b": None}}}]}]},
        {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "tool_calls": [
            {"type": "function", "function": {"name": "f", "arguments": {"a": "z"}}}]}]},
        {"messages": []}]


def plain(value, type_):
    """What snug's reader gives for a value of pyarrow's to_pylist."""
    if value is None:
        return None
    if isinstance(type_, pa.JsonType):
        return json.loads(value)
    if pa.types.is_map(type_):
        return without_nulls({key: plain(item, type_.item_type) for key, item in value})
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return [plain(item, type_.value_type) for item in value]
    if pa.types.is_struct(type_):
        return without_nulls({field.name: plain(value[field.name], field.type) for field in type_})
    return float(value) if pa.types.is_floating(type_) else value


def without_nulls(fields):
    return {name: value for name, value in fields.items() if value is not None or name == "content"}


def read(path):
    with open(path, "rb") as file:
        whole = file.read(6) == b"ARROW1"
    with pa.OSFile(str(path)) as file:
        return (ipc.open_file(file) if whole else ipc.open_stream(file)).read_all()


def write_expected(path, tables=None):
    with open(path.with_name(path.name.removesuffix(".arrow") + ".jsonl"), "w", encoding="utf-8") as out:
        for table in tables or [read(path)]:
            for item in table.to_pylist():
                out.write(json.dumps({f.name: plain(item[f.name], f.type) for f in table.schema}, ensure_ascii=False) + "\n")


def write(path, table, batch=None, stream=True, **options):
    """Writes and reads back with pyarrow."""
    make = ipc.new_stream if stream else ipc.new_file
    with make(str(path), table.schema, options=ipc.IpcWriteOptions(**options)) as out:
        out.write_table(table, max_chunksize=batch)
    write_expected(path)


def scalars(count, nulls):
    def limits(type_):
        bits = type_.bit_width
        low, high = (-2**(bits - 1), 2**(bits - 1) - 1) if pa.types.is_signed_integer(type_) else (0, 2**bits - 1)
        return [low, high, 0, 7]

    rows = []
    for i in range(count):
        row = {f.name: limits(f.type)[i % 4] for f in TYPES if pa.types.is_integer(f.type)}
        row |= {"f16": [0.5, -65504.0, 2.0**-24, 0.0][i % 4], "f32": [0.1, -3.4e38, 1e-45, 2.0][i % 4], "f64": [0.1, -1.7e308, 5e-324, 3.0][i % 4],
                "flag": i % 3 == 0, "nothing": None, "large": "g" * (i % 5), "many": ["\u00e9"] * (i % 3), "pair": [i % 99, -i % 99], "none": [],
                "map": [("k", True), ("content", None)][: i % 3]}
        rows.append({name: None if nulls and (i + k) % 4 == 1 else value for k, (name, value) in enumerate(row.items())})
    return pa.Table.from_pylist(rows, schema=TYPES)


def categories(count, words, start=0):
    """A column and a list of strings in dictionaries; a null may stand in the indices and in the dictionary."""
    values = pa.array([None] + words, pa.string())
    indices = pa.array([None if i % 5 == 4 else (i + start) % (len(words) + 1) for i in range(count)], pa.int8())
    kind = pa.DictionaryArray.from_arrays(indices, values)
    lists = pa.ListArray.from_arrays(pa.array([i * 2 // 3 for i in range(count + 1)], pa.int32()), kind)
    return pa.record_batch({"kind": kind, "text": pa.array([f"t{i}" for i in range(count)]), "kinds": lists})


def write_categories(path, batches, stream=True, **options):
    """Batches with dictionaries of their own: replaced, or written as what was added."""
    make = ipc.new_stream if stream else ipc.new_file
    with make(str(path), batches[0].schema, options=ipc.IpcWriteOptions(**options)) as out:
        for batch in batches:
            out.write_batch(batch)
    write_expected(path)


def nested(path, rows, names=COLUMNS, **options):
    write(path, pa.Table.from_pylist(pick(rows, names), schema=narrow(names)), **options)


def save(path, data, **options):
    """A directory of save_to_disk."""
    shutil.rmtree(path, ignore_errors=True)
    data.save_to_disk(str(path), **options)
    train = data["train"] if isinstance(data, datasets.DatasetDict) else data
    with open(path.with_name(path.name + ".jsonl"), "w", encoding="utf-8") as out:
        for table in train.with_format("arrow").iter(50):
            for item in table.to_pylist():
                out.write(json.dumps({f.name: plain(item[f.name], f.type) for f in table.schema}, ensure_ascii=False) + "\n")


def cached(path, rows, parts):
    """A directory of the cache, with what map and shuffle left there."""
    source = pathlib.Path(SCRATCH.name) / path.name
    source.mkdir()
    files = [source / f"{i}.jsonl" for i in range(parts)]
    for i, file in enumerate(files):
        file.write_text("".join(json.dumps(r) + "\n" for r in rows[i::parts]), encoding="utf-8")
    names = [str(f) for f in files]
    data = datasets.load_dataset("json", data_files={"train": names, "test": names[:1]}, num_proc=parts if parts > 1 else None)
    data["train"].map(lambda row: {"more": 1})
    data["train"].shuffle(seed=1)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(pathlib.Path(data["train"].cache_files[0]["filename"]).parent, path)
    write_expected(path, [data["train"].data.table])


def refused(directory):
    directory.mkdir(exist_ok=True)
    moment = datetime.datetime(2024, 1, 1)
    table = pa.table({"text": ["a", "b"], "at": pa.array([None, moment], pa.timestamp("us")), "bytes": pa.array([None, b"x"], pa.binary()),
                      "nested": pa.array([{"day": None}, {"day": moment.date()}], pa.struct([("day", pa.date32())])),
                      "codes": pa.array([1, 2], pa.int64()).dictionary_encode()})
    with ipc.new_stream(str(directory / "values.arrow"), table.schema) as out:
        out.write_table(table)
    feather.write_feather(pa.table({"text": ["a" * 500]}), str(directory / "lz4.arrow"), compression="lz4")
    view = pa.table({"text": ["a"], "view": pa.array(["b"], pa.string_view())})
    with ipc.new_stream(str(directory / "view.arrow"), view.schema) as out:
        out.write_table(view)


def golden(directory):
    few = make_rows(5, True)
    chats = [{"text": r["text"][:20] if r["text"] else None, "messages": [m and {**m, "content": (m["content"] or "")[:20] or None} for m in r["messages"] or []]}
             for r in few]
    write(directory / "pyarrow_stream.arrow", pa.Table.from_pylist(chats, schema=pa.schema([("text", pa.string()), ("messages", pa.list_(MESSAGE))])), batch=2)
    nested(directory / "pyarrow_zstd.arrow", few, ["text", "rich", "grid"], stream=False, compression="zstd")
    write(directory / "pyarrow_types.arrow", scalars(5, True))
    write(directory / "pyarrow_legacy.arrow", scalars(6, False).select(["i8", "u64", "large", "flag"]), use_legacy_format=True,
          metadata_version=ipc.MetadataVersion.V4)
    write_categories(directory / "pyarrow_dictionary.arrow", [categories(6, ["a", "b"]), categories(6, ["a", "b", "c"])], emit_dictionary_deltas=True)
    refused(directory / "refused")
    data = datasets.Dataset.from_list(CHAT, on_mixed_types="use_json")
    save(directory / "saved", data, num_shards=2)


def matrix(directory):
    number = itertools.count()

    def path(name):
        return directory / f"{next(number):03d}_{name}"

    def file(name):
        return path(name + ".arrow")

    for nulls in (False, True):
        rows = make_rows(700, nulls, 7)
        for stream, codec, batch in itertools.product((True, False), (None, "zstd"), (1, 7, 90, None)):
            nested(file(f"nested_{stream}_{codec}_{batch}"), rows, batch=batch, stream=stream, compression=codec)
            write(file(f"types_{stream}_{codec}_{batch}"), scalars(300, nulls), batch=batch, stream=stream, compression=codec)
        table = pa.Table.from_pylist(pick(rows, COLUMNS), schema=narrow(COLUMNS))
        for begin, length in itertools.product((0, 1, 8, 13, 350), (1, 9, 64, 300)):
            write(file(f"slice_{begin}_{length}"), table.slice(begin, length))
            write(file(f"slice_types_{begin}_{length}"), scalars(700, nulls).slice(begin, length), compression="zstd" if begin == 13 else None)
        for version, legacy in itertools.product((ipc.MetadataVersion.V4, ipc.MetadataVersion.V5), (True, False)):
            nested(file(f"framing_{version}_{legacy}"), rows, batch=100, metadata_version=version, use_legacy_format=legacy)
        for codec, stream in itertools.product(("uncompressed", "zstd"), (True, False)):
            names = ["text", "id", "flag", "real", "messages", "grid", "tags", "deep"]
            frame = polars.from_arrow(pa.Table.from_pylist(pick(rows, names), schema=narrow(names)))
            out = file(f"polars_{codec}_{stream}")
            (frame.write_ipc_stream if stream else frame.write_ipc)(out, compression=codec, compat_level=polars.CompatLevel.oldest())
            write_expected(out)
        names = ["text", "id", "messages", "grid", "tags", "deep"]
        data = datasets.Dataset(pa.Table.from_pylist(pick(rows, names), schema=narrow(names)))
        for shards in (1, 3, 12):
            save(path(f"saved_{shards}"), data, num_shards=shards)
        save(path("saved_shuffled"), data.shuffle(seed=5))
        save(path("saved_filtered"), data.filter(lambda row: row["id"] is not None and row["id"] % 2 == 0))
        save(path("saved_mapped"), data.map(lambda row: {"twice": (row["text"] or "") * 2}), num_shards=2)
        save(path("saved_dict"), datasets.DatasetDict({"test": data.select(range(5)), "train": data.select(range(5, 60))}))
        cached(path("cached_1"), pick(rows, ["text", "id", "messages", "tags"]), 1)
        cached(path("cached_3"), pick(rows, ["text", "id", "messages", "tags"]), 3)
    words = [f"word {i}" for i in range(40)]
    for stream, codec in itertools.product((True, False), (None, "zstd")):
        same = [categories(50, words), categories(50, words, 3)]
        write_categories(file(f"dictionary_{stream}_{codec}"), same, stream, compression=codec)
        grown = [categories(30, words[:10]), categories(30, words[:20]), categories(30, words)]
        write_categories(file(f"dictionary_delta_{stream}_{codec}"), grown, stream, compression=codec, emit_dictionary_deltas=True)
    write_categories(file("dictionary_replaced"), [categories(30, words[:10]), categories(30, words[10:20]), categories(30, words[:3])])
    frame = polars.DataFrame({"kind": ["a", "b", None, "a"] * 20}, schema={"kind": polars.Categorical})
    out = file("polars_categorical")
    frame.write_ipc(out, compat_level=polars.CompatLevel.oldest())
    write_expected(out)
    big = ["w" * 3_000_000, "\u00e9" * 1_000_000, None, "", "x" * 70_000, "y"]
    for codec in (None, "zstd"):
        write(file(f"big_{codec}"), pa.table({"text": big, "tags": [[b] if b else [] for b in big]}), compression=codec)
        write(file(f"long_list_{codec}"), pa.table({"tags": [[str(k) for k in range(200_000)], [], None, ["z"]], "grid": [[[k, None] for k in range(9_000)], None, [], [[]]]}),
              compression=codec)
        write(file(f"long_{codec}"), pa.table({"id": range(200_000), "text": [str(i * i) for i in range(200_000)]}), compression=codec)
    write(file("empty"), pa.Table.from_pylist([], schema=narrow(["text", "messages"])))
    write(file("empty_struct"), pa.table({"s": pa.array([{}, None, {}], pa.struct([])), "n": pa.array([None, None, None], pa.null())}))
    write(file("no_batches"), pa.Table.from_batches([], schema=narrow(["text"])))
    save(path("saved_json"), datasets.Dataset.from_list(CHAT * 30, on_mixed_types="use_json"), num_shards=3)


directory = pathlib.Path(sys.argv[1])
directory.mkdir(parents=True, exist_ok=True)
datasets.disable_progress_bars()
(matrix if "--all" in sys.argv else golden)(directory)
rows = {f: sum(1 for _ in open(f, encoding="utf-8")) for f in directory.glob("*.jsonl")}
print(len(rows), "files or data sets,", sum(rows.values()), "rows")
