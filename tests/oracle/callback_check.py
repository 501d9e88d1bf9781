"""Drives the callback of examples/transformers as the allocator would on a GPU: it must record, keep one snapshot and print snug's
explanation of it once. Needs torch and transformers (CPU builds do)."""

import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "transformers"))

import torch

snug = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "snug")
recorded, observers = [], []
torch.cuda.is_available = lambda: True
torch.cuda.memory._record_memory_history = lambda **options: recorded.append(options)
torch._C._cuda_attach_out_of_memory_observer = observers.append
torch.cuda.memory._dump_snapshot = lambda path: shutil.copy(ROOT / "tests/golden/snapshots/unwinding.pickle", path)

from explain_out_of_memory import ExplainOutOfMemory

with tempfile.TemporaryDirectory() as directory:
    recipe = pathlib.Path(directory) / "recipe.yml"
    recipe.write_text("base_model: mistralai/Mistral-7B-v0.1\nadapter: lora\nmicro_batch_size: 4\ngradient_accumulation_steps: 2\n")
    kept = pathlib.Path(directory) / "kept"
    callback = ExplainOutOfMemory(directory=kept, recipe=recipe, snug=snug)
    said = (pathlib.Path(directory) / "said").open("w+")
    sys.stderr, before = said, sys.stderr
    callback.on_train_begin(None, None, None)
    for _ in range(2):
        observers[0](0, 11 << 20, 24 << 30, 0)
    callback.on_train_end(None, None, None)
    sys.stderr = before
    said.seek(0)
    text = said.read()
    assert recorded == [{"max_entries": 200_000}, {"enabled": None}], recorded
    assert [path.name for path in kept.iterdir()] == ["out-of-memory-0.pickle"]
    assert text.count("GPU 0 is full") == 1 and "in this recipe (axolotl" in text, text
print("the callback records, keeps one snapshot and explains it once")
