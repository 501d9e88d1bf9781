"""Does PEFT read an adapter that snug wrote, and get snug's logits?

    python tests/oracle/check_adapter.py ADAPTER_DIR MODEL_DIR TOKENS_JSON EXPECTED.safetensors [--tensor logits]

Loads MODEL_DIR in float32 and the adapter over it, runs the first step of TOKENS_JSON (a batch.json) and prints the norm-wise
relative error against `logits` of EXPECTED. Exit code 1 above 1e-4, or if a tensor of the adapter is missing, left over or was
not taken as it stands in the file.
"""

import peft
import safetensors.torch
import torch

import oracle


def require_same_tensors(model, adapter):
    """Every tensor of the file must be in the model, and every trained tensor of the model in the file."""
    live = peft.get_peft_model_state_dict(model)
    for name, tensor in safetensors.torch.load_file(adapter / "adapter_model.safetensors").items():
        if name not in live:
            raise SystemExit(f"{name}: PEFT does not know this tensor")
        if not torch.equal(live.pop(name).float(), tensor.float()):
            raise SystemExit(f"{name}: PEFT holds other values than the file")
    missing = [name for name in live if not name.endswith(".base_layer.weight")]  # a frozen copy of the base may stay away
    if missing:
        raise SystemExit(f"not in the file: {', '.join(missing)}")


def main():
    arguments = oracle.check_arguments(__doc__, "adapter", "model")
    model = peft.PeftModel.from_pretrained(oracle.read_model(arguments.model), arguments.adapter).eval()
    require_same_tensors(model, arguments.adapter)
    oracle.check_logits(model, arguments)


if __name__ == "__main__":
    main()
