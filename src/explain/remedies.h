#pragma once
// The changes that a program can make to need less of the device, each once: the word by which a script can follow it, what
// to do in transformers' words, and what it costs.

#include <cstdint>
#include <optional>
#include <string_view>

#include "explain/advice.h"

namespace snug {

enum class Remedy : uint8_t {
  smaller_micro_batch,
  shorter_sequences,
  gradient_checkpointing,
  fused_loss,
  flash_attention,
  bf16_weights,
  quantize_4bit,
  lora,
  optimizer_8bit,
  optimizer_foreach_off,
  detach_kept,
  move_kept_to_host,
  prediction_loss_only,
  eval_accumulation,
  smaller_eval_batch,
  release_hooks,
  drop_second_model,
  load_once,
  smaller_cache,
  merge_on_host,
  save_from_host,
  expandable_segments,
  empty_cache,
  fixed_lengths,
  raise_fraction,
  end_other_process,
  gradient_as_bucket_view,
  reshard_after_forward,
  right_shape,
  larger_card
};

// "smaller_micro_batch"
std::string_view word_of(Remedy remedy);

// With what it can give at most, where that is known.
Advice advice_of(Remedy remedy, std::optional<int64_t> bytes = {});

}  // namespace snug
