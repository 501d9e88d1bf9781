#include "explain/cures.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/size_text.h"

namespace snug {

namespace {

using enum Remedy;

int64_t part(double share, int64_t bytes) { return static_cast<int64_t>(share * static_cast<double>(bytes)); }

// What each change gives at most, in bytes of the need that the verdict tells.
class Gains {
 public:
  Gains(const Verdict& v, const Growth& growth) : c_(v.contents), asked_(v.asked), v_(v), growth_(growth) {}

  int64_t of(Remedy remedy) const {
    switch (remedy) {
      case smaller_micro_batch: return by_batch() / 2;
      case gradient_checkpointing: return part(0.75, c_.activations + c_.scores);
      case flash_attention: return c_.scores + asked_.scores;
      case fused_loss: return part(0.9, c_.logits + asked_.logits);
      case quantize_4bit: return part(0.5, c_.weights);
      case bf16_weights: return c_.weights / 2;
      case lora: return c_.gradients + c_.states + c_.temporaries + asked_.gradients + asked_.states + asked_.temporaries;
      case optimizer_8bit: return (c_.states + asked_.states) / 2;
      case optimizer_foreach_off: return c_.temporaries + asked_.temporaries;
      case detach_kept:
      case move_kept_to_host:
      case release_hooks: return growth_.bytes();
      case prediction_loss_only:
      case eval_accumulation: return std::max(growth_.bytes(), c_.collected);
      case drop_second_model:
      case load_once: return c_.second_weights;
      case smaller_cache: return c_.cache / 2;
      case merge_on_host:
      case save_from_host: return c_.copied;
      case gradient_as_bucket_view: return c_.buckets;
      case reshard_after_forward: return c_.gathered;
      case shorter_sequences:
        return v_.tried.empty() || !v_.tried.back().passes ? by_batch() / 2 : v_.needed_bytes - v_.tried.back().peak_bytes;
      default: return 0;
    }
  }

 private:
  // What goes with the rows of a batch.
  int64_t by_batch() const { return c_.dynamic(); }

  const Contents &c_, &asked_;
  const Verdict& v_;
  const Growth& growth_;
};

bool is_about_kept(Remedy remedy) { return remedy == detach_kept || remedy == move_kept_to_host || remedy == release_hooks; }

}  // namespace

std::vector<Remedy> remedies_of(Filler filler, const Settings& s) {
  switch (filler) {
    case Filler::weights: return {quantize_4bit, bf16_weights};
    case Filler::second_model:
      return s.cast ? std::vector{load_once, drop_second_model} : std::vector{drop_second_model, load_once};
    case Filler::logits: return {fused_loss, smaller_micro_batch, shorter_sequences};
    case Filler::attention: return {flash_attention, smaller_micro_batch, shorter_sequences};
    case Filler::gradients: return {lora, optimizer_8bit, quantize_4bit};
    case Filler::optimizer_states: return {optimizer_8bit, lora};
    case Filler::optimizer_temporaries: return {optimizer_foreach_off, optimizer_8bit, lora};
    case Filler::buckets: return {gradient_as_bucket_view};
    case Filler::gathered: return {reshard_after_forward, smaller_micro_batch};
    case Filler::long_batch:
    case Filler::growing_lengths: return {shorter_sequences, gradient_checkpointing};
    case Filler::kept_graphs: return {detach_kept, move_kept_to_host};
    case Filler::kept_tensors:
      return s.hooked ? std::vector{release_hooks, move_kept_to_host} : std::vector{move_kept_to_host, detach_kept};
    case Filler::kept_evaluation:
      if (s.evaluated) return {prediction_loss_only, eval_accumulation, smaller_eval_batch};
      return {move_kept_to_host, detach_kept, smaller_eval_batch};
    case Filler::kv_cache: return {smaller_cache};
    case Filler::saving:
      return s.merged ? std::vector{merge_on_host, save_from_host} : std::vector{save_from_host, merge_on_host};
    case Filler::activations:
    case Filler::none: break;
  }
  std::vector<Remedy> all{smaller_micro_batch, shorter_sequences, fused_loss};
  if (!s.checkpointed) all.insert(all.begin(), gradient_checkpointing);
  return all;
}

Cures cures_of(const Verdict& v, const Growth& growth, const Settings& settings) {
  const Gains gains(v, growth);
  const int64_t missing = v.needed_bytes - v.limit_bytes;
  Cures cures;
  for (const Remedy remedy : remedies_of(v.filler, settings)) {
    const int64_t bytes = gains.of(remedy);
    cures.list.push_back(advice_of(remedy, bytes > 0 ? std::optional(bytes) : std::nullopt));
    if (is_about_kept(remedy) && !growth.list.empty() && growth.list.front().place)
      cures.list.back().change += fmt::format(" ({}:{})", growth.list.front().place->file, growth.list.front().place->line);
  }
  std::stable_partition(cures.list.begin(), cures.list.end(),
                        [&](const Advice& one) { return one.most_bytes.value_or(0) >= missing; });
  if (v.whole() && !cures.list.empty() && cures.list.front().most_bytes.value_or(0) < missing)
    cures.remark = fmt::format("no change alone gives the {} that are missing", size_text(missing));
  return cures;
}

}  // namespace snug
