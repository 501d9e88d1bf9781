#include "explain/stage_advice.h"

#include <initializer_list>
#include <string_view>

namespace snug {

namespace {

struct Line {
  std::string_view change, effect;
};

void add(std::vector<Advice>& all, std::initializer_list<Line> lines) {
  for (const Line& line : lines) all.push_back({std::string(line.change), std::string(line.effect), {}});
}

void add_activations(std::vector<Advice>& all, bool checkpointed) {
  if (!checkpointed)
    add(all, {{"gradient_checkpointing: true", "keeps block inputs alone; about 30 % slower, same result"}});
  add(all, {{"halve per_device_train_batch_size, double gradient_accumulation_steps",
             "half of the activations; same effective batch"},
            {"attn_implementation: sdpa, or flash_attention_2", "attention memory grows with the length, not its square"},
            {"use_liger_kernel: true", "the logits are never whole"},
            {"a shorter max_length", "the longest row decides; longer ones lose their end"}});
}

void add_weights(std::vector<Advice>& all) {
  add(all, {{"bf16 weights: torch_dtype: bfloat16", "half of fp32's"},
            {"load_in_4bit: true with LoRA (QLoRA)", "about a quarter of bf16's; the base stays frozen"},
            {"several GPUs: FSDP or ZeRO-3, device_map: auto", "each holds a part"}});
}

}  // namespace

void add_stage_advice(std::vector<Advice>& all, const StageFound& stage) {
  switch (stage.stage) {
    case TorchStage::load:
      add(all, {{"load to the CPU first: map_location=\"cpu\", low_cpu_mem_usage=True", "no second copy on the device"}});
      add_weights(all);
      return;
    case TorchStage::loss:
      add(all, {{"use_liger_kernel: true, or TRL's loss_type: chunked_nll",
                 "logits in chunks: fp32 logits and their gradient are never whole"},
                {"halve per_device_train_batch_size, double gradient_accumulation_steps",
                 "half of the logits; same effective batch"},
                {"a shorter max_length", "logits grow with tokens x vocabulary"}});
      return;
    case TorchStage::optimizer:
      add(all, {{"optim: adamw_bnb_8bit (or adamw_8bit)", "states take 2 bytes a parameter instead of 8"},
                {"optim: paged_adamw_8bit", "states go to host memory when they must; slower then"},
                {"AdamW(foreach=False) or fused=True", "no temporary copies of all states at once"},
                {"LoRA instead of full fine-tuning", "states for the adapter alone"},
                {"ZeRO-1 or FSDP", "states are split over the GPUs"}});
      return;
    case TorchStage::evaluation:
      add(all, {{"prediction_loss_only: true", "logits are not kept at all, if no metric needs them"},
                {"per_device_eval_batch_size: 1", "8 unless told, often more than in training"},
                {"eval_accumulation_steps: 1", "logits go to the CPU after each step"},
                {"preprocess_logits_for_metrics with argmax", "keeps token ids instead of a vocabulary of logits"},
                {"bf16_full_eval: true", "half of fp32's, where the model is fp32"}});
      return;
    case TorchStage::generate:
      add(all, {{"a smaller generation batch, fewer max_new_tokens", "the key-value cache grows with both"},
                {"with torch.inference_mode()", "nothing is kept for a backward"},
                {"cache_implementation: offloaded or quantized", "the cache leaves the device; slower"}});
      return;
    case TorchStage::save:
      add(all, {{"torch.cuda.empty_cache() before saving", "returns what the last step left"},
                {"save the adapter alone; merge later with device_map=\"cpu\"", "no merged copy on the device"},
                {"FSDP: offload_to_cpu=True, rank0_only=True; or a sharded state dict", "weights are gathered in RAM"},
                {"ZeRO-3: stage3_gather_16bit_weights_on_model_save: false, then zero_to_fp32.py", "nothing is gathered"}});
      return;
    case TorchStage::capture:
      add(all, {{"gpu_memory_utilization lower, if other things share the device; else 0.95", "what vLLM may take in all"},
                {"a smaller max_model_len, max_num_seqs", "less key-value cache and fewer warm-up rows"},
                {"enforce_eager: true", "no memory for CUDA graphs; slower steps"}});
      return;
    case TorchStage::data:
      add(all, {{"keep batches on the CPU until their step", "one batch on the device at a time"},
                {"halve per_device_train_batch_size, double gradient_accumulation_steps", "same effective batch"}});
      return;
    case TorchStage::forward:
    case TorchStage::backward: add_activations(all, stage.recompute); break;
    case TorchStage::unknown:
      add_activations(all, false);
      add(all, {{"optim: adamw_bnb_8bit", "states take 2 bytes a parameter instead of 8"}});
      break;
  }
  add_weights(all);
}

}  // namespace snug
