#!/usr/bin/env python3
"""What PyTorch prints of made-up statistics: writes tests/golden/torch/memory_summary.txt and memory_stats.txt, and a trace of
torch.profiler with memory events, tests/golden/torch/profiler_trace.json.

No GPU is needed: memory_summary() only formats what memory_stats() returns, and the trace is of the CPU. Written by
torch 2.15.0. Run: /opt/oracle/bin/python tests/oracle/memory_summary.py
"""

import pathlib
import re
import tempfile

import torch
from torch.cuda import memory

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/torch"
GIB, MIB = 1 << 30, 1 << 20
BYTES = {
    "allocated_bytes": (8 * GIB, 10 * GIB),
    "active_bytes": (8 * GIB, 10 * GIB),
    "requested_bytes": (8 * GIB - 5 * MIB, 10 * GIB - 123),
    "reserved_bytes": (11 * GIB, 12 * GIB),
    "inactive_split_bytes": (3 * GIB, 700 * MIB),
}

stats = {"num_ooms": 1, "num_alloc_retries": 2}
for key in [*BYTES, "allocation", "active", "segment", "inactive_split"]:
    for pool in ("all", "large_pool", "small_pool"):
        for name, value in zip(("current", "peak", "allocated", "freed"), (*BYTES.get(key, (1, 2)), 3, 4)):
            stats[f"{key}.{pool}.{name}"] = value
for key in ("oversize_allocations", "oversize_segments"):
    for name in ("current", "peak", "allocated", "freed"):
        stats[f"{key}.{name}"] = 0

memory.memory_stats = lambda device=None: stats
memory._get_device_index = lambda *_, **__: 0
(GOLDEN / "memory_summary.txt").write_text(memory.memory_summary())
(GOLDEN / "memory_stats.txt").write_text(repr(stats) + "\n")

torch.set_num_threads(1)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
    first = torch.zeros(1 << 20)  # 4 MiB
    second = torch.zeros(1 << 19)  # 2 MiB
    del first
    third = torch.zeros(1 << 18)  # 1 MiB
with tempfile.TemporaryDirectory() as directory:
    trace = pathlib.Path(directory) / "trace.json"
    profiler.export_chrome_trace(str(trace))
    text = re.sub(r'"(host_name|traceName)": "[^"]*"', r'"\1": ""', trace.read_text())
(GOLDEN / "profiler_trace.json").write_text(text)
