"""One forward and backward pass of a tiny model of every family beyond Llama, as in make_forward.py: qwen2, qwen2_yarn, qwen3,
gemma, gemma2, gemma3, gemma3_vision, phi3, phi3_longrope, gpt2, mistral_window, qwen3_window, mixtral, qwen3_moe.

Each case asserts, where a feature could go unnoticed, that without it the logits would be others.
"""

import os

import safetensors.torch
import torch
import transformers

import make_forward
import oracle


def without(model, batch, logits, change):
    """Distance of the logits after `change(model)`: what would go unnoticed if the feature were forgotten."""
    change(model)
    distance = oracle.relative_error(oracle.logits_of(model, batch), logits)
    assert distance > 1e-3, distance


def check(case, config, seed, documents, changes=(), keep=1.0):
    model, batch = make_forward.plain(case, config, seed, documents, keep)
    logits = oracle.logits_of(model, batch)
    for change in changes:
        changed = oracle.read_model(oracle.GOLDEN / case)
        without(changed, batch, logits, change)


def set_config(**values):
    def change(model):
        config = model.config.get_text_config()
        for name, value in values.items():
            setattr(config, name, value)
    return change


def no_window(model):
    model.config.get_text_config().sliding_window = 10_000
    for layer in model.model.layers:
        layer.self_attn.sliding_window = 10_000


def zero(part):
    def change(model):
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if part in name:
                    parameter.zero_()
    return change


def qwen2():
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.Qwen2Config, tied=True)
    check("qwen2", config, 21, [[13], [13]], [zero("q_proj.bias"), zero("v_proj.bias")])


def qwen2_yarn():
    """A context of 16 stretched fourfold; D = 16 has kept, divided and mixed frequencies."""
    rope = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16,
            "beta_fast": 4.0, "beta_slow": 1.0}
    config = oracle.tiny_config(C=32, L=1, H=2, K=2, F=40, V=53, family=transformers.Qwen2Config, rope=rope)
    check("qwen2_yarn", config, 22, [[40]])


def qwen3():
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.Qwen3Config, head_dim=16)
    check("qwen3", config, 23, [[13], [13]], [zero("q_norm"), zero("k_norm")])


def qwen3_window():
    """The second of two layers sees a window of 5, within packed documents."""
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.Qwen3Config, head_dim=16,
                                sliding_window=5, use_sliding_window=True, max_window_layers=1)
    check("qwen3_window", config, 24, [[13, 9], [22]], [no_window])


def mistral_window():
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.MistralConfig, head_dim=12,
                                sliding_window=6)
    check("mistral_window", config, 25, [[21], [21]], [no_window])


def gemma():
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.GemmaConfig, head_dim=16, tied=True)
    check("gemma", config, 26, [[13], [13]])


def gemma2():
    """Caps that bite, a score scale that is not 1 / sqrt(D), a window on every other layer."""
    config = oracle.tiny_config(C=24, L=3, H=2, K=1, F=40, V=53, family=transformers.Gemma2Config, head_dim=16, tied=True,
                                sliding_window=6, query_pre_attn_scalar=24, attn_logit_softcapping=2.0,
                                final_logit_softcapping=3.0)
    check("gemma2", config, 27, [[21], [21]],
          [no_window, set_config(final_logit_softcapping=None),
           lambda model: [setattr(layer.self_attn, "attn_logit_softcapping", None) for layer in model.model.layers]])


def gemma3_config(**more):
    rope = {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}}
    return oracle.tiny_config(C=24, L=3, H=2, K=1, F=40, V=53, family=transformers.Gemma3TextConfig, head_dim=16, tied=True,
                              sliding_window=6, query_pre_attn_scalar=20, rope=rope,
                              layer_types=["sliding_attention", "full_attention", "sliding_attention"], **more)


def gemma3():
    check("gemma3", gemma3_config(), 28, [[21], [21]], [zero("q_norm")])


def gemma3_vision():
    """A whole Gemma 3 with its vision tower: the text part is trained, the tower stays as it is and gets no gradient."""
    text = gemma3_config().to_dict()
    vision = transformers.SiglipVisionConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                                             image_size=8, patch_size=4, vision_use_head=False)
    config = transformers.Gemma3Config(text_config=text, vision_config=vision.to_dict(), mm_tokens_per_image=4,
                                       image_token_index=52, boi_token_index=50, eoi_token_index=51)
    directory = oracle.GOLDEN / "gemma3_vision"
    oracle.shutil.rmtree(directory, ignore_errors=True)
    torch.manual_seed(29)
    model = transformers.Gemma3ForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(directory)
    model = transformers.Gemma3ForConditionalGeneration.from_pretrained(directory, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("language_model" in name)
    batch = oracle.make_batch(torch.Generator().manual_seed(29), 50, [[13], [13]])
    targets = oracle.count_targets(batch)
    losses, logits = oracle.accumulate(model, [batch], targets)
    trained = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    total = sum(p.numel() for p in model.parameters())
    tensors = {"logits": torch.cat(logits), "loss": losses[0].reshape(1)} | oracle.gradients(trained)
    oracle.write_golden("gemma3_vision", batch, tensors, {"total_parameters": total})


def phi3():
    config = oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.Phi3Config, pad_token_id=0,
                                eos_token_id=1, bos_token_id=2)
    check("phi3", config, 30, [[13], [13]])


def phi3_longrope():
    """Longer than the original context: the long factors; three quarters of a head turn."""
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
            "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], "long_factor": [1.0, 1.5, 2.5, 4.0, 8.0, 16.0]}
    config = oracle.tiny_config(C=32, L=1, H=2, K=2, F=40, V=53, family=transformers.Phi3Config, rope=rope, positions=64,
                                original_max_position_embeddings=16, pad_token_id=0, eos_token_id=1, bos_token_id=2)
    check("phi3_longrope", config, 31, [[40]])


def gpt2():
    config = transformers.GPT2Config(n_embd=24, n_layer=2, n_head=2, n_inner=40, vocab_size=53, n_positions=32,
                                     initializer_range=0.2, bos_token_id=0, eos_token_id=0)
    check("gpt2", config, 32, [[13, 6], [19]], [zero("wpe"), zero("c_fc.bias"), zero("c_attn.bias")])


def sparse(case, config, seed, names):
    """With packed documents. transformers stacks experts and fuses gate and up; gradients are written as files name them."""
    check(case, config, seed, [[13, 9], [22]])
    file = oracle.GOLDEN / case / "expected.safetensors"
    tensors = {}
    for name, tensor in safetensors.torch.load_file(file).items():
        if name.endswith(".experts.gate_up_proj"):
            root, parts = name.removesuffix("gate_up_proj"), dict(zip(names, tensor.chunk(2, dim=1)))
        elif name.endswith(".experts.down_proj"):
            root, parts = name.removesuffix("down_proj"), {names[2]: tensor}
        else:
            tensors[name.replace(".mlp.gate.", names[3])] = tensor
            continue
        for part, stacked in parts.items():
            for expert, one in enumerate(stacked):
                tensors[f"{root}{expert}.{part}.weight".replace(".mlp.", names[3].removesuffix("gate."))] = one.clone()
    safetensors.torch.save_file(tensors, file, metadata={"format": "pt"})
    file.chmod(0o644)


def mixtral():
    sparse("mixtral", oracle.tiny_config(C=24, L=2, H=2, K=1, F=20, V=53, family=transformers.MixtralConfig,
                                         num_local_experts=5, num_experts_per_tok=2), 41, ("w1", "w3", "w2", ".block_sparse_moe.gate."))


def qwen3_moe():
    """Weights of the chosen experts as they come, and not renormalised."""
    sparse("qwen3_moe", oracle.tiny_config(C=24, L=2, H=2, K=1, F=40, V=53, family=transformers.Qwen3MoeConfig, head_dim=16,
                                           num_experts=7, num_experts_per_tok=3, moe_intermediate_size=12,
                                           norm_topk_prob=False), 42,
           ("gate_proj", "up_proj", "down_proj", ".mlp.gate."))


def main():
    os.chdir(oracle.ROOT)
    for case in (qwen2, qwen2_yarn, qwen3, qwen3_window, mistral_window, gemma, gemma2, gemma3, gemma3_vision, phi3,
                 phi3_longrope, mixtral, qwen3_moe, gpt2):
        case()


if __name__ == "__main__":
    main()
