"""Counts the parameters of every model of src/model/models.txt: transformers builds each from the same config.json on the meta device.
Writes tests/golden/catalogue.json: {"versions": …, "parameters": {name: count}}. Tied weights count once; buffers do not, except for
routers' correction biases, which checkpoints hold as tensors."""

import json
import pathlib
import warnings

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def count(config):
    config = dict(config)
    kind = config.pop("model_type")
    made = transformers.AutoConfig.for_model(kind, **config)
    vision = "vision_config" in config
    auto = transformers.AutoModelForImageTextToText if vision else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(made)
    model.tie_weights()
    total = sum(p.numel() for p in model.parameters())
    return total + sum(b.numel() for name, b in model.named_buffers() if name.endswith("e_score_correction_bias"))


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    parameters, seen = {}, {}
    for line in (ROOT / "src/model/models.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        brace = line.index("{")
        text = line[brace:]
        if text not in seen:
            seen[text] = count(json.loads(text))
        parameters[line[:brace].split()[0]] = seen[text]
    golden = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "parameters": parameters}
    (ROOT / "tests/golden/catalogue.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
