"""Random configurations of known families, small enough for seconds."""

HEADS = 64


def _gated(rng, family, hidden, layers, vocab, heads, positions, tied):
    return {"model_type": family, "hidden_size": hidden, "intermediate_size": rng.choice([2, 3, 4]) * hidden - rng.choice([0, 64]),
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": rng.choice([heads, max(1, heads // 2)]),
            "vocab_size": vocab, "max_position_embeddings": positions, "tie_word_embeddings": tied}


def _gpt2(rng, hidden, layers, vocab, heads, positions):
    return {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": positions, "vocab_size": vocab,
            "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


CLASSES = {"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "gemma": "GemmaForCausalLM", "gpt2": "GPT2LMHeadModel"}


def draw(rng, hidden, layers, vocab, families=tuple(CLASSES), positions=8192, tied=None, heads=None):
    """A config.json: `hidden`, `layers` and `vocab` are (least, most); hidden sizes are multiples of 128, vocabularies of 64."""
    family = rng.choice(families)
    width, depth, words = rng.randrange(hidden[0], hidden[1] + 1, 128), rng.randint(*layers), rng.randrange(vocab[0], vocab[1] + 1, 64)
    count = heads or width // HEADS
    if family == "gpt2":
        config = _gpt2(rng, width, depth, words, count, positions)
    else:
        config = _gated(rng, family, width, depth, words, count, positions, (family == "gemma" or rng.random() < 0.3) if tied is None else tied)
    if family == "gemma":
        config.update(head_dim=width // count, hidden_activation="gelu_pytorch_tanh")
    if family == "mistral":
        config["sliding_window"] = None
    return {**config, "architectures": [CLASSES[family]], "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "torch_dtype": "float32"}
