"""Writes tests/golden/snapshots: memory snapshots whose every state is known, made by allocator_model.py, in
the forms of PyTorch 2.0 to 2.14.
Run: python tests/oracle/make_snapshots.py (Python 3.8 or later, nothing else)."""

import json
import pathlib
import pickle
import random
import sys

from allocator_model import KIB, MIB, Model, OutOfMemory

OUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "snapshots"


def churn(model, seed, steps, sizes, streams=((0, (0, 0)),), late=0.0):
    """Random allocations and frees; some frees complete late; out of memory frees half."""
    rng, live, pending = random.Random(seed), [], []
    for _ in range(steps):
        if live and rng.random() < 0.47:
            address = live.pop(rng.randrange(len(live)))
            if rng.random() < late:
                model.request_free(address)
                pending.append(address)
            else:
                model.free(address)
        elif pending and rng.random() < 0.3:
            address = pending.pop(0)
            if model.is_pending(address):  # a release waits for all of them
                model.complete_free(address)
        else:
            stream, pool = rng.choice(streams)
            try:
                live.append(model.malloc(rng.choice(sizes)(rng), rng.randint(1, 10), stream, pool))
            except OutOfMemory:
                rng.shuffle(live)
                while len(live) > 3:
                    model.free(live.pop())


def small(rng):
    return rng.randint(1, MIB)


def middle(rng):
    return rng.randint(MIB + 1, 10 * MIB)


def large(rng):
    return rng.randint(10 * MIB, 90 * MIB)


def fragmentation():
    """Half of the memory is free, in pieces of 32 MiB: 64 MiB cannot be had."""
    model = Model(512 * MIB)
    first = model.malloc(400 * MIB, 1)
    model.free(first)
    pieces = [model.malloc(32 * MIB, 2 + i % 2) for i in range(12)]
    for address in pieces[::2]:
        model.free(address)
    try:
        model.malloc(150 * MIB, 5)
    except OutOfMemory:
        pass
    return model


def unwinding():
    """Runs out with everything in use; the exception frees it all before the snapshot is written."""
    model, live = Model(300 * MIB), []
    try:
        while True:
            live.append(model.malloc(11 * MIB + len(live), 1 + len(live) % 3))
    except OutOfMemory:
        for address in reversed(live):
            model.free(address)
    return model


def churned(seed, steps, sizes, model, **rest):
    churn(model, seed, steps, sizes, **rest)
    return model


def old_form(snapshot):
    """PyTorch 2.0: blocks without addresses, with their history; no settings."""
    for segment in snapshot["segments"]:
        for key in ("segment_pool_id", "is_expandable", "frames"):
            del segment[key]
        for block in segment["blocks"]:
            address, frames = block.pop("address"), block.pop("frames")
            if block["state"] != "inactive":
                block["history"] = [{"addr": address, "real_size": block.pop("requested_size"), "frames": frames}]
    for event in snapshot["device_traces"][0]:
        for key in ("time_us", "compile_context", "user_metadata"):
            del event[key]
    return {"segments": snapshot["segments"], "device_traces": snapshot["device_traces"]}


def with_host(snapshot):
    """PyTorch 2.14: pinned memory beside, and keys that nobody knows yet."""
    host = [{"action": "alloc", "addr": 4096, "size": 1000, "stream": 0, "time_us": 1, "frames": []}]
    return snapshot | {"host_segments": [{"address": 4096, "size": 4096, "allocated": True, "active": True, "frames": []}],
                       "host_traces": host, "a_key_of_tomorrow": [{"x": (1, 2, 3)}]}  # fmt: skip


def as_xpu(snapshot):
    """Of an Intel GPU: fewer entries, queues for streams, settings as text alone."""
    for event in snapshot["device_traces"][0]:
        event["stream"] = 0x55D000001000 + event["stream"]
        for key in ("compile_context", "user_metadata"):
            del event[key]
    for segment in snapshot["segments"]:
        segment["stream"] = 0x55D000001000 + segment["stream"]
    text = "roundup_power2_divisions:[4:2,16:8,>:4], a_setting_of_tomorrow:[1,2]"
    return {**snapshot, "allocator_settings": {"PYTORCH_ALLOC_CONF": text, "expandable_segments": False}}


def without_frames(snapshot):
    """Recorded with context=None, written by a PyTorch that leaves out what is empty."""
    for entry in [*snapshot["device_traces"][0], *snapshot["segments"], *[b for s in snapshot["segments"] for b in s["blocks"]]]:
        del entry["frames"]
    return snapshot


def beside_another(snapshot):
    """Two devices; the one that is known in every state is the second."""
    other = churned(21, 60, [small, middle], Model(100 * MIB)).snapshot()
    for segment in snapshot["segments"]:
        segment["device"] = 1
    return {**snapshot, "segments": other["segments"] + snapshot["segments"],
            "device_traces": other["device_traces"] + snapshot["device_traces"]}  # fmt: skip


def graphs():
    """Two captures share a pool; nothing is released while they run, and the pool keeps what it has until both graphs are gone."""
    pool, model = (1, 7), Model(600 * MIB)
    for address in [model.malloc(120 * MIB, 1), model.malloc(90 * MIB, 2)]:
        model.free(address)  # cached
    model.begin_capture()
    inside = [model.malloc(60 * MIB, 3 + i, 5, pool) for i in range(5)] + [model.malloc(700 * KIB, 9, 5, pool)]
    refused(model, 200 * MIB, 4, 5, pool)
    model.end_capture()
    model.use_pool(pool)
    model.begin_capture()
    model.free(inside.pop(0))
    inside.append(model.malloc(50 * MIB, 5, 5, pool))
    model.end_capture()
    for address in inside:
        model.free(address)
    kept = model.malloc(290 * MIB, 6)  # releases the 210 MiB
    refused(model, 30 * MIB, 7)
    model.release_pool(pool)
    refused(model, 30 * MIB, 7)
    model.release_pool(pool)
    model.malloc(250 * MIB, 8)
    model.free(kept)
    model.empty_cache()
    churn(model, 22, 60, [small, middle], streams=((0, (0, 0)), (5, (1, 9))), late=0.3)
    return model


def refused(model, *request):
    try:
        model.malloc(*request)
    except OutOfMemory:
        return
    raise AssertionError("there is room")


def capturing(model, seed):
    """Captures begin and end between stretches of a random program."""
    for stretch in range(8):
        if stretch % 2:
            model.begin_capture()
        churn(model, seed + stretch, 40, [small, middle, large], late=0.3,
              streams=((0, (0, 0)), (3, (1, 2)), (3, (0, 5))))  # fmt: skip
        if stretch % 2:
            model.end_capture()
        if stretch == 4:
            model.release_pool((0, 5))
        if stretch == 5:
            model.empty_cache()
    return model


def cases():
    """name: (model, what its snapshot leaves out or adds, the form of the file, the pickle's protocol)"""
    both, same = ((0, (0, 0)), (7, (0, 0)), (0, (1, 4))), lambda snapshot: snapshot
    every = [small, middle, large]
    return {
        "fragmentation": (fragmentation(), {}, same, 4),
        "unwinding": (unwinding(), {}, same, 2),
        "mixed": (churned(1, 300, [small, small, middle, large], Model(700 * MIB)), {}, same, 4),
        "ring": (churned(2, 300, every, Model(700 * MIB)), {"last": 160}, same, 5),
        "pools": (churned(3, 240, every, Model(600 * MIB), streams=both, late=0.4), {"pool_id": True}, same, 3),
        "unnamed_pools": (churned(3, 240, every, Model(600 * MIB), streams=both, late=0.4), {}, same, 4),
        "expandable": (churned(4, 260, every, Model(500 * MIB, expandable=True)), {}, same, 4),
        "expandable_ring": (churned(5, 240, [middle, large], Model(500 * MIB, expandable=True), late=0.3), {"last": 120}, same, 4),
        "expandable_pools": (churned(10, 260, every, Model(560 * MIB, expandable=True), streams=both, late=0.3), {"pool_id": True}, same, 4),
        "own_allocator": (churned(11, 220, every, Model(700 * MIB, expandable=True, own=[(1, 4)]), streams=both), {"pool_id": True}, same, 4),
        "rounded": (churned(6, 160, every, Model(700 * MIB, divisions=4)), {}, same, 4),
        "split_limit": (churned(7, 240, [middle, large], Model(600 * MIB, max_split=40 * MIB)), {}, same, 4),
        "large_segments": (churned(12, 200, every, Model(600 * MIB, max_split=50 * MIB, rounding=30 * MIB, large=48 * MIB)), {}, same, 4),
        "collected": (churned(13, 400, [middle, large, large], Model(2000 * MIB, allowed=900 * MIB, collect=0.7),
                              streams=((0, (0, 0)), (7, (0, 0)))), {}, same, 4),
        "allowed": (churned(14, 200, [middle, large], Model(2000 * MIB, allowed=300 * MIB, expandable=True)), {}, same, 4),
        "graphs": (graphs(), {"pool_id": True}, same, 4),
        "capturing": (capturing(Model(700 * MIB), 30), {"pool_id": True}, same, 4),
        "capturing_expandable": (capturing(Model(700 * MIB, expandable=True), 50), {"pool_id": True}, same, 4),
        "skipped": (churned(15, 200, every, Model(700 * MIB)), {"skip": ["free_requested", "snapshot"]}, same, 4),
        "two_devices": (churned(16, 160, every, Model(400 * MIB)), {}, beside_another, 4),
        "without_frames": (churned(17, 120, every, Model(400 * MIB)), {"frames": False}, without_frames, 4),
        "xpu": (churned(18, 160, every, Model(700 * MIB, divisions={2: 2, 3: 0, 4: 8, **{i: 4 for i in range(5, 16)}, 0: 2, 1: 2})), {}, as_xpu, 4),
        "old": (churned(8, 80, [small, middle], Model(200 * MIB)), {}, old_form, 4),
        "host": (churned(9, 60, [small, middle], Model(200 * MIB)), {}, with_host, 5),
    }  # fmt: skip


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, (model, form, finish, protocol) in cases().items():
        snapshot = model.snapshot(**form)
        first = len(model.events) - form.get("last", len(model.events))
        told = [i for i in range(first, len(model.events)) if model.events[i]["action"] not in form.get("skip", ())]
        expected = {
            "made_by": f"Python {sys.version.split()[0]}", "limit_bytes": model.limit, "events_before": first,
            "allowed_bytes": model.allowed, "own_allocator": sorted(model.own), "device": int(finish is beside_another),
            "calls": model.calls,  # [events before it, name, pool]
            "waited": model.waited,  # events within a release, which waits for other streams
            "totals": ["requested", "allocated", "active", "reserved", "cached"],  # after event i; no cached where pages are mapped
            "peak_allocated": max(model.states[i][1] for i in told),
            "states": {i: model.states[at] for i, at in enumerate(told) if i % 6 == 0}, "final": model.totals(),
            "oom_events": [i for i, at in enumerate(told) if model.events[at]["action"] == "oom"],
        }  # fmt: skip
        snapshot = finish(snapshot)
        (OUT / f"{name}.pickle").write_bytes(pickle.dumps(snapshot, protocol))
        (OUT / f"{name}.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
        print(name, len(model.events), "events,", expected["oom_events"], "out of memory,", len(snapshot["segments"]), "segments")
    bare = cases()["mixed"][0].snapshot()["segments"]
    (OUT / "bare.pickle").write_bytes(pickle.dumps(bare, 2))


main()
