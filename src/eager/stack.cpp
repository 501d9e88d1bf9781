#include "eager/stack.h"

#include "base/error.h"

namespace snug::eager {

int64_t version_number(std::string_view version) {
  int64_t number = 0;
  int parts = 0;  // so many of three are read
  size_t at = 0;
  while (parts < 3) {
    int64_t part = 0;
    while (at < version.size() && version[at] >= '0' && version[at] <= '9') part = part * 10 + (version[at++] - '0');
    number = number * 1000 + part;
    ++parts;
    if (at < version.size() && version[at] == '.') ++at;
  }
  if (number == 0) throw Error("'" + std::string(version) + "' is not a version", "", "write it as 2.4.1");
  return number;
}

namespace {

// What peft, bitsandbytes, DeepSpeed and LitGPT do by their versions.
void follow_other_libraries(StackProfile& stack) {
  const int64_t peft_number = version_number(stack.peft);
  stack.adapters_of_codes_are_wide = peft_number < version_number("0.16");
  stack.adapters_follow_weights = peft_number >= version_number("0.6") && peft_number < version_number("0.12");
  stack.preparation_empties_cache = version_number(stack.peft) >= version_number("0.20");
  stack.expert_adapters_are_folded = peft_number >= version_number("0.21");
  stack.dora_uses_base_output = peft_number >= version_number("0.14");
  stack.dora_product_follows_adapter = peft_number >= version_number("0.19");
  const int64_t bitsandbytes_number = version_number(stack.bitsandbytes);
  stack.four_bit_state_is_copied = bitsandbytes_number >= version_number("0.46");
  stack.four_bit_follows_input = bitsandbytes_number < version_number("0.46");
  stack.four_bit_keeps_input = bitsandbytes_number < version_number("0.43.2");
  stack.optimizer_block = bitsandbytes_number < version_number("0.44") ? 2048 : 256;
  stack.int8_is_transformed = bitsandbytes_number < version_number("0.45");
  stack.zero_leaves_adapters_wide = version_number(stack.deepspeed) >= version_number("0.19");
  stack.litgpt_widens_norms = version_number(stack.litgpt) >= version_number("0.2");
  stack.litgpt_windows_mistral = version_number(stack.litgpt) >= version_number("0.4.13");
  stack.litgpt_pads_in_place = version_number(stack.litgpt) >= version_number("0.4.0");
  stack.litgpt_stable_embedding = version_number(stack.litgpt) >= version_number("0.5.0");
}

}  // namespace

StackProfile stack_profile(std::string_view torch, std::string_view transformers, std::string_view peft,
                           std::string_view bitsandbytes, std::string_view trl, std::string_view litgpt,
                           std::string_view deepspeed, std::string_view fla) {
  const auto given = [](std::string_view version, const char* today) {
    return std::string(version.empty() ? today : version);
  };
  StackProfile stack;
  stack.torch = given(torch, "2.15.0");
  stack.transformers = given(transformers, "5.23.0");
  stack.peft = given(peft, "0.21.2");
  stack.bitsandbytes = given(bitsandbytes, "0.50.0");
  stack.trl = given(trl, "1.16.0");
  stack.litgpt = given(litgpt, "0.5.0");
  if (!fla.empty()) version_number(fla);
  stack.fla = fla;
  stack.deepspeed = given(deepspeed, "0.19.8");
  const int64_t torch_number = version_number(stack.torch), transformers_number = version_number(stack.transformers);
  stack.full_slices_are_nodes = torch_number < version_number("2.6");
  stack.older_segments_first = torch_number >= version_number("2.12");
  stack.norms_have_chunks_apart = torch_number >= version_number("2.15");
  stack.workspace_per_product = torch_number >= version_number("2.15");
  stack.kernels_may_load_at_once = torch_number < version_number("2.1");
  stack.adamw_copies_roots = torch_number < version_number("2.1");
  stack.flash_makes_random_state = torch_number >= version_number("2.7");
  stack.efficient_shares_heads = torch_number >= version_number("2.15");
  stack.loss_copies_logits = transformers_number < version_number("4.50");
  stack.forward_widens_logits = transformers_number < version_number("4.46");
  stack.flash_repeats_heads = transformers_number < version_number("4.48");
  stack.sdpa_copies_inputs = transformers_number < version_number("4.54");
  stack.phi3_joins_rotations = transformers_number >= version_number("4.49");
  stack.rotary_by_product = transformers_number < version_number("5.20");
  stack.rotary_keeps_original = transformers_number >= version_number("5.0");
  stack.trainer_fuses_adam = transformers_number >= version_number("4.54") && torch_number >= version_number("2.8");
  stack.trainer_keeps_cache = transformers_number < version_number("5.0");
  stack.cache_copies_first = transformers_number >= version_number("4.56");
  stack.sft_drops_cache = version_number(stack.trl) >= version_number("0.23");
  stack.sft_chunks_loss = version_number(stack.trl) >= version_number("1.7");
  const int64_t trl_number = version_number(stack.trl);
  stack.sft_narrows_adapters = trl_number >= version_number("0.26");
  stack.sft_narrows_magnitudes = stack.sft_narrows_adapters && trl_number < version_number("1.15");
  stack.sft_always_chunks_loss = version_number(stack.trl) >= version_number("1.16");
  stack.checkpoints_are_within_layers = transformers_number >= version_number("4.53");
  stack.reentrant_by_default = transformers_number < version_number("5.0");
  stack.masks_of_gpt2_are_kept = transformers_number < version_number("5.0");
  stack.gpt2_cache_is_tuples = transformers_number < version_number("4.53");
  stack.blocks_cut_masks = transformers_number < version_number("4.53");
  stack.gpt2_loss_stays_narrow = transformers_number < version_number("4.50");
  stack.capped_scores_are_eager = transformers_number >= version_number("5.0");
  stack.trainer_has_liger_for_adapters = transformers_number >= version_number("4.50");
  stack.evaluation_skips_logits = transformers_number >= version_number("5.0");
  stack.experts_are_grouped = transformers_number >= version_number("5.0") && torch_number >= version_number("2.9");
  stack.evaluation_counts_items = transformers_number >= version_number("5.0");
  stack.embeddings_scale_themselves = transformers_number >= version_number("5.0");
  stack.embeddings_keep_wide_states = transformers_number >= version_number("4.52");
  stack.norms_are_told_by_class = transformers_number < version_number("4.50");
  stack.masks_are_boolean = transformers_number >= version_number("4.53");
  follow_other_libraries(stack);
  return stack;
}

}  // namespace snug::eager
