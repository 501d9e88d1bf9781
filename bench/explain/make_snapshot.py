#!/usr/bin/env python3
"""Writes a memory snapshot of about --bytes, as PyTorch 2.9 would: training steps over a cached set of segments, stacks of 40 to
60 frames that are references to frames written once, a fresh list for every allocation and for every free, a fresh text for every
compile context. The step's last allocation fails (oom) and its tensors are freed by the unwinding. Needs nothing but Python."""

import argparse
import pickle
import random

MIB = 1 << 20
BYTES_OF_EVENT = 262  # about, with protocol 4


def frames(rng):
    """Stacks as a model's layers make them: shared C++ frames inside, a module's lines, the trainer's lines outside."""
    inner = [{"name": f"c10::inner_{i}(long, long)", "filename": "??", "line": 0} for i in range(20)]
    python = [{"name": f"forward_{i}", "filename": f"/app/model/layer_{i % 97}.py", "line": 10 + i % 400} for i in range(3000)]
    outer = [{"name": f"train_{i}", "filename": "/app/train.py", "line": 100 + i} for i in range(12)]
    stacks = []
    for _ in range(4000):
        middle = rng.sample(python, rng.randint(10, 30))
        stacks.append(inner + middle + outer)
    return stacks


def step(rng, stacks, slots, clock, last, letter="A"):
    events = []

    def event(action, address, size, stack):
        clock[0] += rng.randint(1, 50)
        events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": clock[0],
                       "compile_context": f"N/{letter}", "user_metadata": "", "frames": stack})  # fmt: skip

    for address, size in slots:
        event("alloc", address, size - rng.randint(0, 255), list(stacks[rng.randrange(len(stacks))]))
    sizes = [entry["size"] for entry in events]
    if last:
        clock[0] += 1
        events.append({"action": "oom", "device_free": 12 * MIB, "size": 900 * MIB, "stream": 0, "time_us": clock[0],
                       "compile_context": "N/A", "user_metadata": "", "frames": list(stacks[0])})  # fmt: skip
    for (address, _), size in reversed(list(zip(slots, sizes))):
        stack = list(stacks[rng.randrange(len(stacks))])
        event("free_requested", address, size, stack)
        event("free_completed", address, size, stack)
    return events


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--protocol", type=int, default=4)
    parser.add_argument("file")
    wanted = parser.parse_args()
    rng = random.Random(7)
    stacks = frames(rng)
    address, slots, segments = 0x7F0000000000, [], []
    for _ in range(600):
        size = rng.choice([2, 8, 12, 16, 64]) * MIB
        total = 20 * MIB if size < 10 * MIB else size
        slots.append((address, size))
        block = {"address": address, "size": total, "requested_size": size, "state": "inactive", "frames": []}
        segments.append({"device": 0, "address": address, "total_size": total, "allocated_size": 0, "active_size": 0,
                         "requested_size": 0, "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0),
                         "is_expandable": False, "frames": [], "blocks": [block]})  # fmt: skip
        address += total
    clock, trace = [1_700_000_000_000_000], []
    steps = max(1, wanted.bytes // (BYTES_OF_EVENT * 3 * len(slots)))
    for i in range(steps):
        trace += step(rng, stacks, slots, clock, i + 1 == steps)
    with open(wanted.file, "wb") as file:
        pickle.dump({"segments": segments, "device_traces": [trace], "allocator_settings": {"expandable_segments": False},
                     "external_annotations": []}, file, protocol=wanted.protocol)  # fmt: skip
    print(f"{wanted.file}: {len(trace)} events")


main()
