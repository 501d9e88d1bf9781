#include "explain/trainer_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "recipe/dialects/dialect.h"
#include "torch/words.h"

namespace snug {

namespace {

struct Words {
  std::string_view change;          // of transformers
  std::string_view own, lightning;  // what to say instead; empty for Lightning: as for a loop of one's own
  std::string_view effect = {};     // empty: the same
};

constexpr std::string_view kFused = "a fused linear cross entropy, such as liger-kernel's, or the loss in chunks of tokens";

constexpr auto kWords = std::to_array<Words>({
    {"gradient_checkpointing: true", "torch.utils.checkpoint.checkpoint around each block", ""},
    {"halve per_device_train_batch_size, double gradient_accumulation_steps", "half the batch, twice the accumulation steps",
     "half the loader's batch_size, twice Trainer(accumulate_grad_batches=...)"},
    {"per_device_train_batch_size: 1, with gradient_accumulation_steps", "a batch of 1, with accumulation steps",
     "batch_size=1, with Trainer(accumulate_grad_batches=...)"},
    {"attn_implementation: sdpa, or flash_attention_2", "torch.nn.functional.scaled_dot_product_attention", ""},
    {"use_liger_kernel: true, or TRL's loss_type: chunked_nll", kFused, ""},
    {"use_liger_kernel: true", kFused, ""},
    {"a shorter max_length", "shorter or smaller inputs", "", "the largest input decides"},
    {"check the shapes: one sequence far longer than the rest? max_length: 2048",
     "check the shapes: one input far larger than the rest?", "", "the largest input decides"},
    {"bf16 weights: torch_dtype: bfloat16", "model.to(torch.bfloat16), or torch.autocast",
     "Trainer(precision=\"bf16-true\")"},
    {"load_in_4bit: true with LoRA (QLoRA)", "freeze what need not be trained, or LoRA", "",
     "no gradients and no states for what is frozen"},
    {"several GPUs: FSDP or ZeRO-3, device_map: auto", "several GPUs: FSDP or ZeRO-3", "Trainer(strategy=\"fsdp\")"},
    {"optim: adamw_bnb_8bit (or adamw_8bit)", "bitsandbytes.optim.AdamW8bit", ""},
    {"optim: adamw_bnb_8bit", "bitsandbytes.optim.AdamW8bit", ""},
    {"optim: paged_adamw_8bit", "bitsandbytes.optim.PagedAdamW8bit", ""},
    {"batches of one shape: packing: true, or pad_to_multiple_of: 64", "batches of one shape: pad to a few sizes", ""},
    {"prediction_loss_only: true", "torch.inference_mode() around the evaluation; losses as .item()", "",
     "nothing is kept for a backward, and no outputs"},
    {"per_device_eval_batch_size: 1", "a smaller evaluation batch", "", "only rows at a time change, not the result"},
    {"eval_accumulation_steps: 1", "outputs.cpu() after each evaluation step", "", "outputs do not gather on the device"},
    {"preprocess_logits_for_metrics with argmax", "keep outputs.argmax(-1), not the logits", ""},
    {"bf16_full_eval: true", "torch.autocast in the evaluation", ""},
    {"load to the CPU first: map_location=\"cpu\", low_cpu_mem_usage=True", "torch.load(..., map_location=\"cpu\")", ""},
});

bool any_file_has(const Traceback& traceback, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(traceback.frames, [&](const Frame& frame) {
    return std::ranges::any_of(parts, [&](std::string_view part) { return contains(frame.file, part); });
  });
}

}  // namespace

Trainer trainer_of(const Traceback* traceback) {
  if (traceback == nullptr) return Trainer::transformers;
  const auto of_trainer = [](const Frame& frame) { return is_trainers_file(frame.file); };
  if (std::ranges::any_of(traceback->frames, of_trainer) ||
      any_file_has(*traceback, {"peft", "vllm", "sglang", "Cell In", "ipython", "ipykernel"}))
    return Trainer::transformers;
  if (any_file_has(*traceback, {"lightning/", "lightning\\", "pytorch_lightning"})) return Trainer::lightning;
  return traceback->own() != nullptr ? Trainer::own_loop : Trainer::transformers;
}

void put_in_words_of(Trainer trainer, std::vector<Advice>& advice) {
  if (trainer == Trainer::transformers) return;
  for (Advice& one : advice) {
    const auto words = std::ranges::find(kWords, one.change, &Words::change);
    if (words == kWords.end()) continue;
    const bool lightning = trainer == Trainer::lightning && !words->lightning.empty();
    one.change = lightning ? words->lightning : words->own;
    if (!words->effect.empty()) one.effect = words->effect;
  }
}

}  // namespace snug
