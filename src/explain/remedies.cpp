#include "explain/remedies.h"

#include <array>
#include <string>

namespace snug {

namespace {

struct Entry {
  std::string_view word, change, effect;
};

constexpr auto kEntries = std::to_array<Entry>({
    {"smaller_micro_batch", "halve per_device_train_batch_size, double gradient_accumulation_steps",
     "half of the activations; same effective batch"},
    {"shorter_sequences", "a shorter max_length", "the longest row decides; longer ones lose their end"},
    {"gradient_checkpointing", "gradient_checkpointing: true", "keeps block inputs alone; about 30 % slower, same result"},
    {"fused_loss", "use_liger_kernel: true, or TRL's loss_type: chunked_nll",
     "logits in chunks: fp32 logits and their gradient are never whole"},
    {"flash_attention", "attn_implementation: sdpa, or flash_attention_2",
     "attention memory grows with the length, not its square"},
    {"bf16_weights", "bf16 weights: torch_dtype: bfloat16", "half of fp32's"},
    {"quantize_4bit", "load_in_4bit: true with LoRA (QLoRA)", "about a quarter of bf16's; the base stays frozen"},
    {"lora", "LoRA instead of full fine-tuning", "gradients and states for the adapter alone"},
    {"optimizer_8bit", "optim: adamw_bnb_8bit (or adamw_8bit)", "states take 2 bytes a parameter instead of 8"},
    {"optimizer_foreach_off", "AdamW(foreach=False) or fused=True", "no temporary copies of all states at once"},
    {"detach_kept", "keep numbers, not tensors with their graphs: loss.item(), or .detach()",
     "a loss or output that is kept keeps all that its backward would need"},
    {"move_kept_to_host", "keep it on the CPU: .detach().cpu(), or not at all",
     "what gathers on the device grows with every step"},
    {"prediction_loss_only", "prediction_loss_only: true", "logits are not kept at all, if no metric needs them"},
    {"eval_accumulation", "eval_accumulation_steps: 1", "logits go to the CPU after each step"},
    {"smaller_eval_batch", "per_device_eval_batch_size: 1", "8 unless told, often more than in training"},
    {"release_hooks", "remove the forward hooks, or let them keep .detach().cpu()", "what a hook stores lives on"},
    {"drop_second_model", "the second model: on the CPU, in 4 bits, or not at all",
     "a reference under LoRA is the model itself with the adapter switched off"},
    {"load_once", "load to the CPU first: map_location=\"cpu\", low_cpu_mem_usage=True", "no second copy on the device"},
    {"smaller_cache", "a smaller generation batch, fewer max_new_tokens", "the key-value cache grows with both"},
    {"merge_on_host", "save the adapter alone; merge later with device_map=\"cpu\"", "no merged copy on the device"},
    {"save_from_host", "copy to the CPU tensor by tensor before saving", "no second set of weights on the device"},
    {"expandable_segments", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
     "segments grow instead of being cut up; no cost (Linux; if it is set already, it cannot help)"},
    {"empty_cache", "torch.cuda.empty_cache() between training and evaluation",
     "only between stages: in each step it costs time"},
    {"fixed_lengths", "batches of one shape: packing: true, or pad_to_multiple_of: 64",
     "blocks are used again instead of new ones beside them"},
    {"raise_fraction", "raise torch.cuda.set_per_process_memory_fraction, or leave it out",
     "unless the rest is meant for others"},
    {"end_other_process", "look at `nvidia-smi`: which processes hold the device?",
     "a notebook's kernel keeps its memory until it is restarted"},
    {"gradient_as_bucket_view", "ddp_kwargs: gradient_as_bucket_view=True",
     "gradients lie in DDP's buckets, not beside them"},
    {"reshard_after_forward", "FSDP: reshard_after_forward: true (full_shard)",
     "gathered weights are given back after each layer"},
    {"right_shape", "check the shapes: one sequence far longer than the rest? max_length: 2048",
     "the longest row decides; longer ones lose their end"},
    {"larger_card", "a card with more memory", ""},
});

static_assert(kEntries.size() == static_cast<size_t>(Remedy::larger_card) + 1);

}  // namespace

std::string_view word_of(Remedy remedy) { return kEntries[static_cast<size_t>(remedy)].word; }

Advice advice_of(Remedy remedy, std::optional<int64_t> bytes) {
  const Entry& entry = kEntries[static_cast<size_t>(remedy)];
  return {.change = std::string(entry.change),
          .effect = std::string(entry.effect),
          .most_bytes = bytes,
          .todo = std::string(entry.word)};
}

}  // namespace snug
