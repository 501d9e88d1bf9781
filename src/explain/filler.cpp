#include "explain/filler.h"

#include <array>

namespace snug {

std::string_view name_of(Filler filler) {
  constexpr std::array<std::string_view, 18> kNames = {"none",
                                                       "weights",
                                                       "second_model",
                                                       "activations",
                                                       "logits",
                                                       "attention",
                                                       "gradients",
                                                       "optimizer_states",
                                                       "optimizer_temporaries",
                                                       "buckets",
                                                       "gathered",
                                                       "long_batch",
                                                       "growing_lengths",
                                                       "kept_graphs",
                                                       "kept_tensors",
                                                       "kept_evaluation",
                                                       "kv_cache",
                                                       "saving"};
  return kNames[static_cast<size_t>(filler)];
}

Filler filler_of(Part part, TorchStage stage) {
  switch (part) {
    case Part::scores: return Filler::attention;
    case Part::logits: return Filler::logits;
    case Part::cache: return Filler::kv_cache;
    case Part::states: return Filler::optimizer_states;
    case Part::buckets: return Filler::buckets;
    case Part::gathered: return Filler::gathered;
    case Part::collected: return Filler::kept_evaluation;
    case Part::copied: return Filler::saving;
    case Part::whole: break;
  }
  switch (stage) {
    case TorchStage::load: return Filler::weights;
    case TorchStage::forward: return Filler::activations;
    case TorchStage::loss: return Filler::logits;
    case TorchStage::optimizer: return Filler::optimizer_temporaries;
    case TorchStage::generate: return Filler::kv_cache;
    case TorchStage::save: return Filler::saving;
    default: return Filler::none;
  }
}

}  // namespace snug
