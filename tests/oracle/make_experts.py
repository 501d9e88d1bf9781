"""Cases of mixtures of experts: experts_mixtral, experts_qwen3, experts_qwen3_plain (weights of choices not renormalised).

Two sparse MLP blocks of transformers in a residual stream, without attention: x = embedding[0 … M), x += block(x) twice,
loss = mean cross entropy of x lm_head^T against `targets`. model.safetensors holds what that takes, under the names that
save_pretrained writes; expected.safetensors: `hidden` [M, C] after both blocks, `loss` [1], `grad.NAME` of every tensor of
model.safetensors, brought under those names by save_pretrained as well. batch.json: sizes and `targets` [M].
"""

import pathlib
import shutil
import tempfile

import safetensors.torch
import torch
import transformers

import oracle

USED = ("embed_tokens", "lm_head", "block_sparse_moe", "mlp")


def saved(model, gradients=False):
    """The tensors of a model, or their gradients, as save_pretrained names and splits them."""
    with tempfile.TemporaryDirectory() as directory, torch.no_grad():
        kept = {name: p.detach().clone() for name, p in model.named_parameters()}
        if gradients:
            for p in model.parameters():
                p.copy_(torch.zeros_like(p) if p.grad is None else p.grad)
        model.save_pretrained(directory)
        for name, p in model.named_parameters():
            p.copy_(kept[name])
        tensors = safetensors.torch.load_file(pathlib.Path(directory) / "model.safetensors")
    return {name: t for name, t in tensors.items() if any(word in name for word in USED)}


def case(name, config, seed, tokens, choices, normalize, C, F, E):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, experts_implementation="eager")
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.5 * torch.randn_like(p))
        model.model.embed_tokens.weight[:, 0] = 2.0  # all tokens have this in common, and expert 1 dislikes it
        model.model.layers[0].mlp.gate.weight[1, 0] = -8.0
    targets = torch.randint(config.vocab_size, (tokens,))
    counts = []
    x = model.model.embed_tokens.weight[:tokens]
    for layer in model.model.layers:
        with torch.no_grad():
            logits, _, chosen = layer.mlp.gate(x)
            counts.append(torch.bincount(chosen.flatten(), minlength=E).tolist())
            ranked = logits.sort(dim=-1, descending=True).values
            assert (ranked[:, choices - 1] - ranked[:, choices]).min() > 1e-3  # no choice hangs on a rounding
        x = x + layer.mlp(x[None])[0]
    loss = torch.nn.functional.cross_entropy(x @ model.lm_head.weight.T, targets)
    loss.backward()
    assert counts[0][1] == 0, counts

    directory = oracle.GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    safetensors.torch.save_file(saved(model), directory / "model.safetensors", metadata={"format": "pt"})
    gradients = {f"grad.{key}": value for key, value in saved(model, gradients=True).items()}
    batch = {"tokens": tokens, "hidden_size": C, "expert_width": F, "experts": E, "choices": choices, "normalize": normalize,
             "vocab_size": config.vocab_size, "layers": config.num_hidden_layers, "targets": targets.tolist()}
    oracle.write_golden(name, batch, {"hidden": x, "loss": loss.reshape(1)} | gradients,
                        {"loss": loss.item(), "tokens_of_expert": counts})


def main():
    common = dict(num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=4, tie_word_embeddings=False)
    case("experts_mixtral",
         transformers.MixtralConfig(hidden_size=12, intermediate_size=10, num_local_experts=6, num_experts_per_tok=2,
                                    vocab_size=19, **common), 1, 11, 2, True, 12, 10, 6)
    for name, normalize, seed in (("experts_qwen3", True, 2), ("experts_qwen3_plain", False, 3)):
        case(name, transformers.Qwen3MoeConfig(hidden_size=10, intermediate_size=16, moe_intermediate_size=7, num_experts=9,
                                               num_experts_per_tok=3, norm_topk_prob=normalize, vocab_size=17, **common),
             seed, 7, 3, normalize, 10, 7, 9)


if __name__ == "__main__":
    main()
