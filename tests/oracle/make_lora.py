"""PEFT LoRA, r 4, alpha 8, on q, k, v, o, gate, up, down: lora (untied), lora_tied_head, lora_save_head (both tied); on fused
projections: lora_phi3, lora_gpt2 (whose weights are [in, out]); lora_gemma2.

Each: adapter/ (as PEFT saves it, lora_B random and not zero, so that lora_A has a gradient), one forward and backward pass on the
first step's batch, 20 steps of AdamW (rate 1e-2 constant, no decay, clip 1), adapter_final/.

expected.safetensors: `logits`, `loss` [1], `grad.NAME` of every trained tensor (NAME as in adapter_model.safetensors) before training;
`logits_final` of the same batch after training; `logits_merged`: the same after merge_and_unload.

What PEFT 0.21.2 really does when the embedding is tied (every line is measured below and stands in expected.json, `peft`):

lora_tied_head, target_modules with lm_head (and ensure_weight_tying false, the default)
  - lm_head becomes y = W x + s B A x. W stays the one tied matrix, frozen; embed_tokens sees no adapter.
  - The file holds lora_A and lora_B of lm_head *and* the whole frozen matrix, as `base_model.model.lm_head.base_layer.weight`:
    PEFT's save_embedding_layers="auto" fires because `lm_head` stands in target_modules. A file without it loads just as well.
  - merge_and_unload adds B A to the tied matrix in place, so the embedding changes too and the merged model is a *different*
    function (large `merged_distance`). A right merge must untie first.
lora_save_head, modules_to_save=["lm_head"]
  - The head is deep-copied: the copy trains on its own, embed_tokens keeps the original, frozen. The tie is broken in effect,
    while config.json still says tie_word_embeddings: true.
  - The copy alone is in the file, as `base_model.model.lm_head.weight` (no adapter name, no `modules_to_save` in the name).
  - merge_and_unload gives the right function and sets tie_word_embeddings to false in the merged model's config.
"""

import json
import os
import tempfile

import peft
import safetensors.torch
import torch
import transformers

import oracle

STEPS, RATE = 20, 1e-2
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
HEAD_BASE = "base_model.model.lm_head.base_layer.weight"


def trained_by_file_name(model):
    """{name in adapter_model.safetensors: parameter} of every trained parameter, matched by the memory they share."""
    names = {tensor.data_ptr(): name for name, tensor in peft.get_peft_model_state_dict(model).items()}
    return {names[p.data_ptr()]: p for p in model.parameters() if p.requires_grad}


def save_adapter(model, directory):
    model.save_pretrained(directory)
    (directory / "README.md").unlink()  # PEFT's empty model card
    file = directory / "adapter_config.json"
    config = json.loads(file.read_text())
    config["target_modules"].sort()  # a set inside PEFT: its order changes from run to run
    file.write_text(json.dumps(config, indent=2, sort_keys=True))
    return safetensors.torch.load_file(directory / "adapter_model.safetensors")


def read_adapter(base_directory, adapter_directory):
    return peft.PeftModel.from_pretrained(oracle.read_model(base_directory), adapter_directory).eval()


def tie_facts(model, base, directory, saved, logits_final, batch):
    """What became of the tied matrix, measured after training."""
    facts = {"tensors_beside_lora": sorted(name for name in saved if ".lora_" not in name)}
    embedding = model.get_base_model().model.embed_tokens.weight
    head = model.get_base_model().lm_head
    if hasattr(head, "base_layer"):
        facts["head_base_shares_memory_with_embedding"] = head.base_layer.weight.data_ptr() == embedding.data_ptr()
    else:
        facts["head_copy_shares_memory_with_embedding"] = \
            head.modules_to_save["default"].weight.data_ptr() == embedding.data_ptr()
        facts["head_copy_moved"] = oracle.relative_error(head.modules_to_save["default"].weight, embedding)
    facts["embedding_trained"] = embedding.requires_grad
    facts["embedding_unchanged"] = torch.equal(embedding, base["model.embed_tokens.weight"])
    if HEAD_BASE in saved:
        facts["saved_head_base_equals_embedding"] = torch.equal(saved[HEAD_BASE], base["model.embed_tokens.weight"])
        with tempfile.TemporaryDirectory() as short:
            short = type(directory)(short)
            (short / "adapter_config.json").write_text((directory / "adapter_final/adapter_config.json").read_text())
            safetensors.torch.save_file({k: v for k, v in saved.items() if k != HEAD_BASE}, short / "adapter_model.safetensors")
            facts["distance_when_loaded_without_head_base"] = oracle.relative_error(
                oracle.logits_of(read_adapter(directory, short), batch), logits_final)
    return facts


def make(case, tied, seed, config=None, **lora):
    family = config is not None
    config = config or oracle.tiny_config(C=32, L=2, H=4, K=2, F=48, V=61 if tied else 67, tied=tied)
    directory = oracle.write_model(case, config, seed)
    base = safetensors.torch.load_file(directory / "model.safetensors")
    generator = torch.Generator().manual_seed(seed)
    steps = [{"micro_batches": [oracle.make_batch(generator, config.vocab_size, [[11], [11]], 0.8)]} for _ in range(STEPS)]
    (batch,) = steps[0]["micro_batches"]

    torch.manual_seed(seed)
    with oracle.recorded_warnings() as warned:
        model = peft.get_peft_model(oracle.read_model(directory),
                                    peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, task_type="CAUSAL_LM", **lora)).eval()
        trained = trained_by_file_name(model)
        with torch.no_grad():
            for name, parameter in trained.items():
                if ".lora_B." in name:
                    parameter.normal_(0.0, 0.1)
        save_adapter(model, directory / "adapter")

    (loss,), (logits,) = oracle.accumulate(model, [batch], oracle.count_targets(batch))
    tensors = {"logits": logits, "loss": loss.reshape(1)} | oracle.gradients(trained.items())
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    model.zero_grad()

    optimizer = torch.optim.AdamW(trained.values(), lr=RATE, weight_decay=0.0)
    metrics = oracle.train(model, optimizer, transformers.get_scheduler("constant", optimizer), steps)
    with oracle.recorded_warnings() as warned_again:
        saved = save_adapter(model, directory / "adapter_final")
    tensors["logits_final"] = oracle.logits_of(model, batch)

    facts = {"trained": list(trained), "saved": sorted(saved)}
    if tied and not family:
        facts |= tie_facts(model, base, directory, saved, tensors["logits_final"], batch)
    reloaded = read_adapter(directory, directory / "adapter_final")
    facts["reloaded_distance"] = oracle.relative_error(oracle.logits_of(reloaded, batch), tensors["logits_final"])
    with oracle.recorded_warnings() as warned_at_merge:
        merged = reloaded.merge_and_unload()
    tensors["logits_merged"] = oracle.logits_of(merged, batch)
    facts["merged_distance"] = oracle.relative_error(tensors["logits_merged"], tensors["logits_final"])
    facts["merged_tie_word_embeddings"] = merged.config.tie_word_embeddings
    if not family:
        facts["merged_embedding_unchanged"] = torch.equal(merged.model.embed_tokens.weight, base["model.embed_tokens.weight"])
    facts["warnings"] = {"wrap": warned, "save": warned_again, "merge": warned_at_merge}

    oracle.write_golden(case, {"steps": steps}, tensors,
                        {"arithmetic": "weights, adapter, optimizer and arithmetic in float32, eager attention",
                         "recipe": {"optim": "adamw_torch", "learning_rate": RATE, "lr_scheduler_type": "constant",
                                    "max_steps": STEPS, "weight_decay": 0.0, "max_grad_norm": 1.0, "adam_beta1": 0.9,
                                    "adam_beta2": 0.999, "adam_epsilon": 1e-8, "gradient_accumulation_steps": 1,
                                    "per_device_train_batch_size": 2},
                         "loss": loss.item(), "denominator": "targets", "steps": metrics, "peft": facts})


def main():
    os.chdir(oracle.ROOT)
    make("lora", tied=False, seed=8, target_modules=TARGETS)
    make("lora_tied_head", tied=True, seed=9, target_modules=TARGETS + ["lm_head"])
    make("lora_save_head", tied=True, seed=10, target_modules=TARGETS, modules_to_save=["lm_head"])
    sizes = {"C": 24, "L": 2, "H": 2, "K": 1, "F": 40, "V": 53}
    make("lora_phi3", tied=False, seed=33, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
         config=oracle.tiny_config(**sizes, family=transformers.Phi3Config, pad_token_id=0, eos_token_id=1, bos_token_id=2))
    make("lora_gpt2", tied=True, seed=34, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True,
         config=transformers.GPT2Config(n_embd=24, n_layer=2, n_head=2, n_inner=40, vocab_size=53, n_positions=32,
                                        initializer_range=0.2, bos_token_id=0, eos_token_id=0))
    make("lora_gemma2", tied=True, seed=35, target_modules=TARGETS,
         config=oracle.tiny_config(**sizes, family=transformers.Gemma2Config, head_dim=16, tied=True, sliding_window=6,
                                   query_pre_attn_scalar=24, attn_logit_softcapping=2.0, final_logit_softcapping=3.0))


if __name__ == "__main__":
    main()
