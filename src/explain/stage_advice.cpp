#include "explain/stage_advice.h"

#include <initializer_list>

#include "explain/remedies.h"

namespace snug {

namespace {

using enum Remedy;

void add(std::vector<Advice>& all, std::initializer_list<Remedy> remedies) {
  for (const Remedy remedy : remedies) all.push_back(advice_of(remedy));
}

void say(std::vector<Advice>& all, const char* change, const char* effect) { all.push_back({change, effect, {}}); }

// The same change said for what it does at this stage.
void add_for(std::vector<Advice>& all, Remedy remedy, const char* effect) {
  all.push_back(advice_of(remedy));
  all.back().effect = effect;
}

// `batch_first`: where it is not known whether this is a training, what helps in any program comes first.
void add_activations(std::vector<Advice>& all, bool checkpointed, bool batch_first = false) {
  if (batch_first) add(all, {smaller_micro_batch});
  if (!checkpointed) add(all, {gradient_checkpointing});
  if (!batch_first) add(all, {smaller_micro_batch});
  add(all, {flash_attention});
  all.push_back(advice_of(fused_loss));
  all.back().change = "use_liger_kernel: true";
  all.back().effect = "the logits are never whole";
  add(all, {shorter_sequences});
}

void add_weights(std::vector<Advice>& all) {
  add(all, {bf16_weights, quantize_4bit});
  say(all, "several GPUs: FSDP or ZeRO-3, device_map: auto", "each holds a part");
}

void add_evaluation(std::vector<Advice>& all) {
  add(all, {prediction_loss_only, smaller_eval_batch, eval_accumulation});
  say(all, "preprocess_logits_for_metrics with argmax", "keeps token ids instead of a vocabulary of logits");
  say(all, "bf16_full_eval: true", "half of fp32's, where the model is fp32");
}

void add_optimizer(std::vector<Advice>& all) {
  add(all, {optimizer_8bit});
  say(all, "optim: paged_adamw_8bit", "states go to host memory when they must; slower then");
  add(all, {optimizer_foreach_off});
  add_for(all, lora, "states for the adapter alone");
  say(all, "ZeRO-1 or FSDP", "states are split over the GPUs");
}

void add_saving(std::vector<Advice>& all) {
  say(all, "torch.cuda.empty_cache() before saving", "returns what the last step left");
  add(all, {merge_on_host});
  say(all, "FSDP: offload_to_cpu=True, rank0_only=True; or a sharded state dict", "weights are gathered in RAM");
  say(all, "ZeRO-3: stage3_gather_16bit_weights_on_model_save: false, then zero_to_fp32.py", "nothing is gathered");
}

void add_generation(std::vector<Advice>& all) {
  add(all, {smaller_cache});
  say(all, "with torch.inference_mode()", "nothing is kept for a backward");
  say(all, "cache_implementation: offloaded or quantized", "the cache leaves the device; slower");
}

void add_capture(std::vector<Advice>& all) {
  say(all, "a lower gpu_memory_utilization, or SGLang's --mem-fraction-static: 0.8",
      "less for the cache, more for activations and graphs beside it");
  say(all, "a smaller max_num_seqs, max_num_batched_tokens, max_model_len", "fewer warm-up rows");
  say(all, "enforce_eager: true", "no memory for CUDA graphs; slower steps");
}

}  // namespace

void add_stage_advice(std::vector<Advice>& all, const StageFound& stage) {
  switch (stage.stage) {
    case TorchStage::load:
      add(all, {load_once});
      add_weights(all);
      return;
    case TorchStage::loss:
      add(all, {fused_loss});
      add_for(all, smaller_micro_batch, "half of the logits; same effective batch");
      add_for(all, shorter_sequences, "logits grow with tokens x vocabulary");
      return;
    case TorchStage::optimizer: add_optimizer(all); return;
    case TorchStage::evaluation: add_evaluation(all); return;
    case TorchStage::generate: add_generation(all); return;
    case TorchStage::save: add_saving(all); return;
    case TorchStage::capture: add_capture(all); return;
    case TorchStage::data:
      say(all, "keep batches on the CPU until their step", "one batch on the device at a time");
      add_for(all, smaller_micro_batch, "same effective batch");
      return;
    case TorchStage::forward:
    case TorchStage::backward: add_activations(all, stage.recompute); break;
    case TorchStage::unknown:
      add_activations(all, false, true);
      add(all, {optimizer_8bit});
      all.back().change = "optim: adamw_bnb_8bit";
      break;
  }
  add_weights(all);
}

}  // namespace snug
