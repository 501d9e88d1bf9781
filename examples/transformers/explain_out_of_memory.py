"""Why did it run out? A callback for transformers' Trainer (TRL, axolotl, LLaMA-Factory …) that keeps the allocator's record and
lets `snug explain` read it at the moment of failure.

    from explain_out_of_memory import ExplainOutOfMemory

    trainer = Trainer(..., callbacks=[ExplainOutOfMemory(recipe="config.yaml")])
    trainer.train()

Recording costs a few percent of time, and host memory for the newest `entries` events. Nothing leaves the machine.
"""

import pathlib
import shutil
import subprocess
import sys

import torch
from transformers import TrainerCallback


class ExplainOutOfMemory(TrainerCallback):
    def __init__(self, directory=".", recipe=None, entries=200_000, snug="snug"):
        self.directory = pathlib.Path(directory)
        self.recipe, self.entries, self.snug = recipe, entries, snug
        self.explained = False

    def on_train_begin(self, args, state, control, **kwargs):
        if not torch.cuda.is_available():
            return
        torch.cuda.memory._record_memory_history(max_entries=self.entries)
        torch._C._cuda_attach_out_of_memory_observer(self.ran_out)

    # Called by the allocator before it raises: what held the memory is still there.
    def ran_out(self, device, wanted, device_total, device_free):
        if self.explained:
            return
        self.explained = True
        self.directory.mkdir(parents=True, exist_ok=True)
        snapshot = self.directory / f"out-of-memory-{device}.pickle"
        torch.cuda.memory._dump_snapshot(str(snapshot))
        if shutil.which(self.snug) is None:
            print(f"memory snapshot kept in {snapshot}: snug explain {snapshot}", file=sys.stderr)
            return
        command = [self.snug, "explain", str(snapshot)]
        if self.recipe is not None:
            command += [str(self.recipe), "--memory", f"{device_total}B"]
        subprocess.run(command, stdout=sys.stderr, check=False)

    def on_train_end(self, args, state, control, **kwargs):
        if torch.cuda.is_available():
            torch.cuda.memory._record_memory_history(enabled=None)
