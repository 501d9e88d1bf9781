"""Full fine-tuning with bitsandbytes' 8-bit optimizers on the CPU, 50 steps: losses_8bit.json.

The model and its batches are those of qlora_online (make_qlora.py), in float32, its matrices of 4,096 elements in 8-bit states. The CPU
optimizer differs from the CUDA definition in its quantizer (65,536 steps instead of the nearest code) and keeps no signs; there is no
decay, whose order differs too.
"""

import json
import os

import bitsandbytes
import transformers

import oracle

STEPS = 50
OPTIMIZERS = {"adamw_8bit": (bitsandbytes.optim.AdamW8bit, 3e-4, {"eps": 1e-8}), "lion_8bit": (bitsandbytes.optim.Lion8bit, 5e-5, {})}


def main():
    os.chdir(oracle.ROOT)
    batches = json.loads((oracle.GOLDEN / "qlora_online" / "batch.json").read_text())["steps"]
    steps = [batches[step % len(batches)] for step in range(STEPS)]
    made = {"versions": oracle.versions() | {"bitsandbytes": bitsandbytes.__version__}}
    for name, (kind, rate, more) in OPTIMIZERS.items():
        model = oracle.read_model(oracle.GOLDEN / "qlora_online")
        optimizer = kind(model.parameters(), lr=rate, betas=(0.9, 0.999), weight_decay=0.0, **more)
        metrics = oracle.train(model, optimizer, transformers.get_scheduler("constant", optimizer), steps)
        coded = sum("absmax1" in state for state in optimizer.state.values())
        assert coded > 0
        made[name] = {"learning_rate": rate, "coded_tensors": coded, "losses": [m["loss"] for m in metrics]}
    oracle.write_json(oracle.GOLDEN / "losses_8bit.json", made)


if __name__ == "__main__":
    main()
