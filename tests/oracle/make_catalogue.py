"""Counts the parameters of every model of src/model/models.txt: transformers builds each from the same config.json on the meta device.
Writes tests/golden/catalogue.json: {"versions": …, "parameters": {name: count}, "tensors": {name: {tensor: shape}}, "lora": {name:
{targets: count}}, "linears": {name: count}}. Tensors for one model of each plan-only block: outside layers, of the first layer, and of the first with experts
where the first has none. Linears: numbers in layers that a quantized load replaces, the head left out. LoRA: what PEFT trains with r 16. Tied weights count once; buffers do not (DeepSeek-V3's routers have one:
the correction of their scores), nor do layers for multi-token prediction, which transformers leaves out of the model."""

import json
import pathlib
import re
import warnings

import peft
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]


TENSORS_OF = ("tiiuae/falcon-7b", "tiiuae/falcon-40b", "openai/gpt-oss-20b", "allenai/OLMo-2-1124-7B", "HuggingFaceTB/SmolLM3-3B",
              "deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V3", "allenai/Olmo-3-1025-7B", "ibm-granite/granite-3.1-2b-instruct",
              "zai-org/glm-4-9b-hf", "zai-org/GLM-4-9B-0414", "stabilityai/stablelm-2-1_6b", "microsoft/phi-2", "nvidia/Minitron-4B-Base",
              "ByteDance-Seed/Seed-OSS-36B-Base", "facebook/opt-125m", "bigscience/bloom-560m", "tiiuae/falcon-rw-1b", "allenai/OLMo-1B-hf",
              "swiss-ai/Apertus-8B-2509", "Salesforce/codegen-350M-mono")
LINEARS_OF = ("meta-llama/Llama-3.2-1B", "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "openai/gpt-oss-20b", "allenai/OLMoE-1B-7B-0924",
              "deepseek-ai/DeepSeek-V2-Lite", "zai-org/GLM-4.5-Air", "ibm-granite/granite-3.1-1b-a400m-base", "Qwen/Qwen3-Next-80B-A3B-Instruct",
              "microsoft/phi-2", "meta-llama/Llama-4-Scout-17B-16E", "google/gemma-4-E2B", "google/gemma-4-26B-A4B", "LiquidAI/LFM2-8B-A1B",
              "LGAI-EXAONE/EXAONE-4.0-1.2B", "facebook/opt-350m")
LORA_OF = {
    "deepseek-ai/DeepSeek-V2-Lite": "q_proj,kv_a_proj_with_mqa,kv_b_proj,o_proj",
    "deepseek-ai/DeepSeek-V3": "q_a_proj,q_b_proj,kv_a_proj_with_mqa,kv_b_proj,o_proj",
}


def nested(c):
    """transformers reads the newer ones' sizes from a text_config alone."""
    return dict(model_type=c["model_type"], text_config={k: v for k, v in c.items() if k not in ("model_type", "vision_config", "architectures", "rope_scaling")},
                vision_config=c["vision_config"], tie_word_embeddings=c["tie_word_embeddings"])


# Models whose code comes with their files: built as a family whose matrices have as many numbers.
STAND_INS = {
    "qwen3_vl": nested,
    "qwen3_vl_moe": nested,
    "internlm2": lambda c: {k: v for k, v in c.items() if k != "bias"} | dict(model_type="llama"),
    "exaone": lambda c: dict(c, model_type="llama", num_hidden_layers=c["num_layers"]),
    # Heads whose size is told apart: transformers 5 refuses a Llama whose width is no multiple of their number.
    "llama": lambda c: dict(c, model_type="mistral", sliding_window=None) if c["hidden_size"] % c["num_attention_heads"] else dict(c),
    "minicpm": lambda c: dict(c, model_type="llama"),
    "baichuan": lambda c: dict(c, model_type="llama"),
    "qwen": lambda c: dict(c, model_type="qwen2", intermediate_size=c["intermediate_size"] // 2, num_key_value_heads=c["num_attention_heads"]),
    "chatglm": lambda c: dict(model_type="gpt_neox", hidden_size=c["hidden_size"], intermediate_size=c["inner_hidden_size"],
                              num_hidden_layers=c["num_layers"], num_attention_heads=c["num_attention_heads"], vocab_size=c["vocab_size"],
                              tie_word_embeddings=True) if "inner_hidden_size" in c else dict(model_type="glm", hidden_size=c["hidden_size"], intermediate_size=c["ffn_hidden_size"], pad_token_id=0,
                              num_hidden_layers=c["num_layers"], num_attention_heads=c["num_attention_heads"], head_dim=c["kv_channels"],
                              num_key_value_heads=c["multi_query_group_num"], vocab_size=c["padded_vocab_size"], tie_word_embeddings=False),
}


def build(config):
    config = STAND_INS.get(config["model_type"], dict)(config)
    kind = {"kimi_k2": "deepseek_v3"}.get(config["model_type"], config["model_type"])
    del config["model_type"]
    made = transformers.AutoConfig.for_model(kind, **config)
    vision = "vision_config" in config
    auto = transformers.AutoModelForImageTextToText if vision else transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(made)
    model.tie_weights()
    return model


def count(model):
    return sum(p.numel() for p in model.parameters())


def in_files(name, shape):
    """DeepSeek's files hold each expert's gate and up apart: here all experts' under the first one's name."""
    root, _, matrix = name.rpartition(".experts.")
    if matrix == "gate_up_proj":
        experts, both, width = shape
        return {f"{root}.experts.0.{half}_proj.weight": [experts, both // 2, width] for half in ("gate", "up")}
    return {f"{root}.experts.0.{matrix}.weight": shape} if matrix == "down_proj" else {name: shape}


def tensors(model):
    first = getattr(model.config, "first_k_dense_replace", None)
    layer = re.compile(r"\.(?:layers|h)\.(\d+)\.")
    shapes = {}
    for name, parameter in model.named_parameters():
        found = layer.search(name)
        if found and int(found[1]) not in (0, first):
            continue
        shape = list(parameter.shape)
        shapes.update({name: shape} if first is None else in_files(name, shape))
    return shapes


def linears(model):
    head = model.get_output_embeddings()
    return sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear) and m is not head)


def trained(text, targets):
    config = peft.LoraConfig(r=16, target_modules=targets.split(","))
    with torch.device("meta"):
        model = peft.get_peft_model(build(json.loads(text)), config, low_cpu_mem_usage=True)
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def main():
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    parameters, seen, shapes, lora, layers = {}, {}, {}, {}, {}
    for line in (ROOT / "src/model/models.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        brace = line.index("{")
        text = line[brace:]
        name = line[:brace].split()[0]
        if text not in seen or name in TENSORS_OF + LINEARS_OF:
            model = build(json.loads(text))
            seen[text] = count(model)
            if name in TENSORS_OF:
                shapes[name] = tensors(model)
            if name in LINEARS_OF:
                layers[name] = linears(model)
        parameters[name] = seen[text]
        if name in LORA_OF:
            lora[name] = {LORA_OF[name]: trained(text, LORA_OF[name])}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
    golden = {"versions": versions, "parameters": parameters, "tensors": shapes, "lora": lora, "linears": layers}
    (ROOT / "tests/golden/catalogue.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
