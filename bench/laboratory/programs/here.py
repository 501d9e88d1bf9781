"""What the scripts of the laboratory share: their settings, and PyTorch's record of its memory as docs/explain.md shows it."""
import json
import os
import pathlib
import types

import torch

args = types.SimpleNamespace(**json.loads(pathlib.Path(__file__).with_name("settings.json").read_text()))


def record(moment):
    """Records allocations from the moment on that the settings name; memory that runs out leaves snapshot.pickle."""
    if args.record != moment or os.environ.get("RANK", "0") != "0":
        return
    torch.cuda.memory._record_memory_history(max_entries=args.entries, stacks=args.stacks)
    torch._C._cuda_attach_out_of_memory_observer(lambda *_: torch.cuda.memory._dump_snapshot("snapshot.pickle"))


if "LABORATORY_ROWS" in os.environ:
    import probe

    probe.begin(torch)
