"""Counts the parameters of every model of src/model/models.txt: transformers builds each from the same config.json on the meta device.
Writes tests/golden/catalogue.json: {"versions": …, "parameters": {name: count}, "tensors": {name: {tensor: shape}}}, tensors for one
model of each plan-only block, of the first layer and outside layers. Tied weights count once; buffers do not, except for
routers' correction biases, which checkpoints hold as tensors."""

import json
import pathlib
import re
import warnings

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]


TENSORS_OF = ("tiiuae/falcon-7b", "tiiuae/falcon-40b", "openai/gpt-oss-20b", "allenai/OLMo-2-1124-7B", "HuggingFaceTB/SmolLM3-3B")


def build(config):
    config = dict(config)
    kind = config.pop("model_type")
    made = transformers.AutoConfig.for_model(kind, **config)
    vision = "vision_config" in config
    auto = transformers.AutoModelForImageTextToText if vision else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(made)
    model.tie_weights()
    return model


def count(model):
    total = sum(p.numel() for p in model.parameters())
    return total + sum(b.numel() for name, b in model.named_buffers() if name.endswith("e_score_correction_bias"))


def tensors(model):
    other_layer = re.compile(r"\.(layers|h)\.[1-9]")
    return {name: list(p.shape) for name, p in model.named_parameters() if not other_layer.search(name)}


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    parameters, seen, shapes = {}, {}, {}
    for line in (ROOT / "src/model/models.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        brace = line.index("{")
        text = line[brace:]
        name = line[:brace].split()[0]
        if text not in seen or name in TENSORS_OF:
            model = build(json.loads(text))
            seen[text] = count(model)
            if name in TENSORS_OF:
                shapes[name] = tensors(model)
        parameters[name] = seen[text]
    golden = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "parameters": parameters, "tensors": shapes}
    (ROOT / "tests/golden/catalogue.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
