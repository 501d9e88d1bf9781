#!/usr/bin/env python3
"""One fine-tuning run with the real torch, transformers, peft and bitsandbytes, of a setup that `snug plan --json` or `snug fit --json` names
under "pytorch": "setup". Run by advice.py under `snug measure --gpu CARD`, whose device gives no more than the card has.

  advice_run.py MODEL SETUP.json       MODEL: a name of src/model/models.txt"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "oracle"))
import eager_goldens  # noqa: E402

DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
MOST_ACCUMULATED = 3  # a third micro-step does what the second did


def row_of(model, setup):
    """The setup as a row of the eager model's goldens."""
    row = dict(eager_goldens.SETTINGS, model=model, layers=0, method=setup["method"], weights=DTYPES.get(setup["weights"], setup["weights"]),
               amp={"f16": "fp16", "float16": "fp16", "bfloat16": "bf16"}.get(setup["autocast"], setup["autocast"] or "none"),
               quant=setup["quantization"], prep=setup["preparation"] if setup["quantization"] != "none" else "none",
               attention={"flash_attention_2": "flash"}.get(setup["attention"], setup["attention"]), checkpointing=setup["checkpointing"],
               optim=setup["optimizer"], batch=setup["batch"], accum=min(setup["accumulation"], MOST_ACCUMULATED), seq=setup["length"])
    if setup["method"] == "lora":
        row.update(rank=setup["rank"], dropout=str(setup["dropout"]), dora=int(setup["dora"]), targets=":".join(setup["targets"]))
    import torch
    row["sm"] = int("".join(map(str, torch.cuda.get_device_capability())))
    return row


if __name__ == "__main__":
    eager_goldens.run(row_of(sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text())))
