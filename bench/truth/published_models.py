"""Models that published rows name and the catalogue does not know: their configurations, as plain dictionaries. Vocabularies are those of
the rows, padded by the tokens that a benchmark added."""

import json
import pathlib

import fms_rows

CATALOGUE = pathlib.Path(__file__).resolve().parent.parent.parent / "src" / "model" / "models.txt"


def qwen(width, mlp, layers, heads, vocabulary=151936):
    """Qwen 1, whose intermediate_size counts gate and up together."""
    return dict(model_type="qwen", architectures=["QWenLMHeadModel"], hidden_size=width, intermediate_size=2 * mlp, num_hidden_layers=layers,
                num_attention_heads=heads, kv_channels=128, vocab_size=vocabulary, seq_length=8192, layer_norm_epsilon=1e-6,
                rotary_emb_base=10000, no_bias=True, tie_word_embeddings=False, torch_dtype="bfloat16")


def llama(width, mlp, layers, heads, kv_heads, vocabulary, positions=4096, **more):
    return dict(model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=width, intermediate_size=mlp, num_hidden_layers=layers,
                num_attention_heads=heads, num_key_value_heads=kv_heads, vocab_size=vocabulary, max_position_embeddings=positions,
                rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False, torch_dtype="bfloat16", **more)


MODELS = {
    "Qwen-1.8B": qwen(2048, 5504, 24, 16),
    "Qwen-7B": qwen(4096, 11008, 32, 32),
    "Qwen-14B": qwen(5120, 13696, 40, 40, 152064),
    "Qwen-72B": dict(qwen(8192, 24576, 80, 64, 152064), seq_length=32768),
    "openbuddy-zephyr-7b": dict(fms_rows.MODELS["mistralai/Mistral-7B-v0.1"], vocab_size=36608, torch_dtype="bfloat16"),
    "chatglm3-6b": dict(model_type="chatglm", architectures=["ChatGLMModel"], hidden_size=4096, num_hidden_layers=28),
    "Llama-2-70B": llama(8192, 28672, 80, 64, 8, 32000),
    "Llama-2-70B (fms)": llama(8192, 28672, 80, 64, 8, 32001),
    "Mixtral-8x7B": dict(model_type="mixtral", architectures=["MixtralForCausalLM"], hidden_size=4096, intermediate_size=14336,
                         num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, vocab_size=32001, num_local_experts=8,
                         num_experts_per_tok=2, max_position_embeddings=32768, rms_norm_eps=1e-5, rope_theta=1e6,
                         tie_word_embeddings=False, torch_dtype="bfloat16"),
    "santacoder": dict(model_type="gpt_bigcode", architectures=["GPTBigCodeForCausalLM"], n_embd=2048, n_layer=24, n_head=16),
    "granite-3.0-3b-a800m": dict(model_type="granitemoe", architectures=["GraniteMoeForCausalLM"], hidden_size=1536),
    "moe-7b-1b": dict(model_type="granitemoeshared", architectures=["GraniteMoeSharedForCausalLM"], hidden_size=1536),
    "stablelm-base-alpha-3b": dict(model_type="gpt_neox", architectures=["GPTNeoXForCausalLM"], hidden_size=4096, num_hidden_layers=16),
    "phi-1.5": dict(model_type="phi", architectures=["PhiForCausalLM"], hidden_size=2048, num_hidden_layers=24),
}
NAMES = {  # as rows write them, and as the catalogue does
    "falcon-7b": "tiiuae/falcon-7b", "gemma-2b": "google/gemma-2b", "gemma-7b": "google/gemma-7b", "gemma-2-2b": "google/gemma-2-2b",
    "gemma-2-9b": "google/gemma-2-9b", "llama-2-7b": "meta-llama/Llama-2-7b-hf", "llama-3-8b": "meta-llama/Meta-Llama-3-8B",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B", "llama-3.2-1b": "meta-llama/Llama-3.2-1B", "llama-3.2-3b": "meta-llama/Llama-3.2-3B",
    "mistral-7b": "mistralai/Mistral-7B-v0.1", "mistral-7b-v0.2": "mistralai/Mistral-7B-Instruct-v0.2", "phi-2": "microsoft/phi-2",
    "phi-3-mini-4k-instruct": "microsoft/Phi-3-mini-4k-instruct", "phi-3": "microsoft/Phi-3-mini-4k-instruct", "tiny-llama": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
}


def catalogue():
    found = {}
    for line in CATALOGUE.read_text().splitlines():
        if line.startswith("#") or "{" not in line:
            continue
        names, config = line[:line.index("{")].split(), json.loads(line[line.index("{"):])
        for name in names:
            found[name.lower()] = config
    return found


KNOWN = catalogue()


def config_of(name, dtype="bfloat16"):
    """The configuration of a model, loaded in `dtype`; none where nobody knows it."""
    config = MODELS.get(name) or fms_rows.MODELS.get(name) or KNOWN.get(NAMES.get(name.lower(), name).lower())
    return dict(config, torch_dtype=dtype) if config else None
