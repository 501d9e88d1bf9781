"""QLoRA as transformers, peft and bitsandbytes do it on the CPU, 50 steps, a tiny model of every family: qlora_FAMILY.

The model is quantized by transformers while it loads and saved as it is then (`model.safetensors`: codes, scales, quant_state), so
that the file is what people download. Experts are no nn.Linear in transformers 5, which leaves them alone; here bitsandbytes'
functions quantize each and its numbers are put back, while the file keeps what they were. `qlora_online` keeps the unquantized model:
whoever trains on it quantizes it himself.

Policy: NF4, double quantization, everything computed in float32 (bnb_4bit_compute_dtype float32; embeddings, norms and head float32),
LoRA r 4, alpha 8 on every linear but the head, AdamW (rate 2e-3 constant, no decay, clip 1).

Rows are multiples of 64 elements: where they are not, bitsandbytes 0.50.2 reads wrong scales on CPUs with AVX-512
(dequantize_4bit takes a block's scale from the row's start). On such CPUs Linear4bit in eval mode rounds scales to bfloat16 for
good, whatever the compute dtype; so the quantized linears alone are left in training mode.
"""

import os

import bitsandbytes.functional as F
import peft
import torch
import transformers

import make_lora
import oracle

STEPS, BATCHES, RATE = 50, 5, 2e-3
SIZES = {"C": 64, "L": 1, "H": 2, "K": 1, "F": 64, "V": 53}
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def config_of(family, **more):
    return oracle.tiny_config(**SIZES, family=family, **more)


def quantization(**other):
    return transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                           bnb_4bit_compute_dtype=torch.float32, **other)


def quantize_experts(model):
    """What NF4 makes of each expert's matrix, in its place."""
    for name, parameter in model.named_parameters():
        if ".experts." not in name:
            continue
        with torch.no_grad():
            halves = 2 if name.endswith("gate_up_proj") else 1  # gate and up are apart in files
            for expert in parameter:
                for part in expert.chunk(halves):
                    codes, state = F.quantize_4bit(part.contiguous(), quant_type="nf4", compress_statistics=True)
                    part.copy_(F.dequantize_4bit(codes, state))


def make(case, config, seed, targets, keep_numbers=False, **lora):
    directory = oracle.write_model(case, config, seed)
    numbers = (directory / "model.safetensors").read_bytes(), (directory / "config.json").read_text()
    model = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", device_map="cpu", quantization_config=quantization()).eval()
    model.save_pretrained(directory)
    quantize_experts(model)
    if keep_numbers:
        (directory / "model.safetensors").write_bytes(numbers[0])
        (directory / "config.json").write_text(numbers[1])
    linears = [m for m in model.modules() if type(m).__name__ == "Linear4bit"]

    generator = torch.Generator().manual_seed(seed)
    batches = [{"micro_batches": [oracle.make_batch(generator, config.vocab_size, [[12], [12]], 0.8)]} for _ in range(BATCHES)]
    steps = [batches[step % BATCHES] for step in range(STEPS)]
    torch.manual_seed(seed)
    model = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, task_type="CAUSAL_LM",
                                                       target_modules=targets, **lora)).eval()
    trained = make_lora.trained_by_file_name(model)
    with torch.no_grad():
        for name, parameter in trained.items():
            if ".lora_B." in name:
                parameter.normal_(0.0, 0.02)
    for linear in linears:
        linear.training = True
    make_lora.save_adapter(model, directory / "adapter")
    optimizer = torch.optim.AdamW(trained.values(), lr=RATE, weight_decay=0.0)
    metrics = oracle.train(model, optimizer, transformers.get_scheduler("constant", optimizer), steps)
    assert linears and all(p.dtype == torch.float32 for p in trained.values())
    oracle.write_golden(case, {"steps": batches}, {"loss": torch.tensor([m["loss"] for m in metrics])},
                        {"arithmetic": "NF4 with double quantization, dequantized to float32; all else float32, eager attention",
                         "quantized_linears": len(linears), "learning_rate": RATE, "losses": [m["loss"] for m in metrics],
                         "grad_norms": [m["grad_norm"] for m in metrics]})


def main():
    os.chdir(oracle.ROOT)
    t = transformers
    make("qlora_llama", config_of(t.LlamaConfig), 50, LINEARS)
    make("qlora_online", config_of(t.LlamaConfig, tied=True), 51, LINEARS, keep_numbers=True)
    make("qlora_mistral", config_of(t.MistralConfig, sliding_window=6), 52, LINEARS)
    make("qlora_qwen2", config_of(t.Qwen2Config, tied=True), 53, LINEARS)
    make("qlora_qwen3", config_of(t.Qwen3Config, head_dim=64), 54, LINEARS)
    make("qlora_gemma", config_of(t.GemmaConfig, head_dim=64, tied=True), 55, LINEARS)
    make("qlora_gemma2", config_of(t.Gemma2Config, head_dim=64, tied=True, sliding_window=6, query_pre_attn_scalar=64,
                                   attn_logit_softcapping=2.0, final_logit_softcapping=3.0), 56, LINEARS)
    rope = {"sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0}}
    make("qlora_gemma3", config_of(t.Gemma3TextConfig, head_dim=64, tied=True, sliding_window=6, query_pre_attn_scalar=64, rope=rope,
                                   layer_types=["sliding_attention"]), 57, LINEARS)
    make("qlora_phi3", config_of(t.Phi3Config, pad_token_id=0, eos_token_id=1, bos_token_id=2), 58,
         ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"])
    make("qlora_gpt2", t.GPT2Config(n_embd=64, n_layer=1, n_head=2, n_inner=128, vocab_size=53, n_positions=32,
                                    initializer_range=0.2, bos_token_id=0, eos_token_id=0), 59, ["c_attn", "c_proj", "c_fc"])
    make("qlora_mixtral", config_of(t.MixtralConfig, num_local_experts=3, num_experts_per_tok=2), 60, LINEARS[:4])
    make("qlora_qwen3_moe", config_of(t.Qwen3MoeConfig, head_dim=64, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=64,
                                      decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True), 61, LINEARS[:4])


if __name__ == "__main__":
    main()
