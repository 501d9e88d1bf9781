"""Counts the parameters of models whose blocks are of several kinds: transformers builds each on the meta device from its class's own
defaults, with the changes named here. Writes tests/golden/mixed.json: {"versions": …, "models": [{"config": …, "parameters": count,
"tensors": {name with "{}" for the layer: numbers over all layers}}]}. A config holds what differs from what any config.json has."""

import json
import pathlib
import re
import warnings

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]

MODELS = [
    ("qwen3_next", {}), ("qwen3_5_text", {}), ("qwen3_5_moe_text", {}), ("falcon_h1", {}), ("falcon_h1", dict(mamba_d_ssm=None, mamba_rms_norm=True)),
    ("lfm2", dict(num_hidden_layers=16, hidden_size=2048, layer_types=["conv", "conv", "full_attention", "conv"] * 4)),
    ("granitemoehybrid", dict(layer_types=(["mamba"] * 5 + ["attention"]) * 4, num_hidden_layers=24)),
    ("granitemoehybrid", dict(num_local_experts=0, layer_types=["attention"] * 8, num_hidden_layers=8)),
    ("llama4_text", {}), ("llama4_text", dict(num_local_experts=128, interleave_moe_layer_step=2)),
    ("gemma3n_text", {}), ("gemma3n_text", dict(num_hidden_layers=30, num_kv_shared_layers=10, intermediate_size=8192)),
    ("gemma4_text", {}), ("gemma4_text", dict(attention_k_eq_v=True, num_global_key_value_heads=2, hidden_size_per_layer_input=0)),
    ("starcoder2", {}), ("gpt_bigcode", {}), ("gpt_neox", {}), ("gptj", {}), ("gpt_neo", {}),
]
DROPPED = ("_name_or_path", "time_step_limit", "transformers_version", "activation_sparsity_pattern", "per_layer_config", "rope_parameters", "id2label", "label2id")


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    models = []
    for kind, changes in MODELS:
        config = transformers.AutoConfig.for_model(kind, **changes)
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        model.tie_weights()
        tensors = {}
        for name, parameter in model.named_parameters():
            name = re.sub(r"\.(layers|h)\.\d+\.", r".\1.{}.", name)
            tensors[name] = tensors.get(name, 0) + parameter.numel()
        written = {k: v for k, v in config.to_dict().items() if k not in DROPPED and v is not None and not isinstance(v, dict)}
        for key, value in written.items():
            if isinstance(value, list) and len(set(map(str, value))) == 1 and key == "intermediate_size":
                written[key] = value[0]
        written.update({k: v for k, v in changes.items() if v is None or k == "num_global_key_value_heads"})
        models.append({"config": {"model_type": kind, **written}, "parameters": sum(tensors.values()), "tensors": tensors})
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    lines = ",\n".join(json.dumps(model) for model in models)
    (ROOT / "tests/golden/mixed.json").write_text(f'{{"versions": {json.dumps(versions)}, "models": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
