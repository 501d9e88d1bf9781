#include "explain/verdict_text.h"

#include <fmt/format.h>

#include "explain/size_text.h"

namespace snug {

namespace {

// What is held, and what was asked for where it is more than that.
std::string held_text(int64_t held, int64_t asked) {
  return asked > held ? fmt::format("{} held and {} asked for", size_text(held), size_text(asked)) : size_text(held);
}

// What stands behind "GPU 0 is full: ".
std::string reason_of(const Verdict& v) {
  const Contents& c = v.contents;
  switch (v.filler) {
    case Filler::none: return "tensors fill it";
    case Filler::weights: return fmt::format("the weights alone take {} and more", size_text(c.weights + c.second_weights));
    case Filler::second_model:
      return fmt::format("a second set of weights, {} beside {}", size_text(c.second_weights), size_text(c.weights));
    case Filler::activations:
      return fmt::format("what forward keeps for backward, {}", size_text(c.activations + c.temporaries));
    case Filler::logits: return fmt::format("the logits and their copies, {}", held_text(c.logits, v.asked.logits));
    case Filler::attention:
      return fmt::format("attention's scores, length x length, {}", held_text(c.scores, v.asked.scores));
    case Filler::gradients: return fmt::format("gradients of the weights, {} so far", size_text(c.gradients));
    case Filler::optimizer_states: return fmt::format("the optimizer's states, {} so far", size_text(c.states));
    case Filler::optimizer_temporaries:
      return fmt::format("temporary copies of the optimizer's step, {} so far", size_text(c.temporaries));
    case Filler::buckets: return fmt::format("DDP's buckets of gradients, {} so far", size_text(c.buckets));
    case Filler::gathered: return fmt::format("weights gathered from the other ranks, {}", size_text(c.gathered));
    case Filler::long_batch: return "this batch is longer than all before it";
    case Filler::growing_lengths: return "batches grow longer from step to step";
    case Filler::kept_graphs: return "each step leaves its graph behind";
    case Filler::kept_tensors: return "each step leaves tensors behind";
    case Filler::kept_evaluation: return "the evaluation keeps its outputs on the device";
    case Filler::kv_cache: return fmt::format("the cache of keys and values, {}", size_text(c.cache));
    case Filler::saving: return fmt::format("copies of the weights to be written, {} so far", size_text(c.copied));
  }
  return "tensors fill it";
}

std::string told_text(const Verdict& v) {
  switch (v.need_told) {
    case NeedTold::rounds: return "as the steps before tell";
    case NeedTold::recipe: return "by the model of " + v.recipe_engine;
    case NeedTold::weights: return "as the weights tell";
    case NeedTold::layers: return fmt::format("as the layers before tell, of {}", v.contents.layers);
    case NeedTold::nobody: break;
  }
  return "at least";
}

}  // namespace

std::string answer_of(const Verdict& v, int device, int64_t asked) {
  switch (v.cause) {
    case Cause::impossible_request:
      return fmt::format("GPU {}: one tensor of {} was asked for; {} is all there is", device, size_text(asked),
                         size_text(v.limit_bytes));
    case Cause::memory_limit:
      return fmt::format("GPU {}: {} were refused although the device had room: a limit below what it has", device,
                         size_text(asked));
    case Cause::fragmentation:
      return fmt::format("GPU {} is fragmented: {} of {} would have been enough, without holes", device,
                         size_text(v.needed_bytes), size_text(v.limit_bytes));
    default: return fmt::format("GPU {} is full: {}", device, reason_of(v));
  }
}

std::vector<std::string> counterfactual_lines(const Verdict& v) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("{} needed, {}, of {} that PyTorch could have", size_text(v.needed_bytes), told_text(v),
                              size_text(v.limit_bytes)));
  for (const Counterfactual& one : v.tried)
    if (one.without != "holes")
      lines.push_back(fmt::format("without {}: {}{}", one.without, v.need_told == NeedTold::rounds ? "" : "at least ",
                                  size_text(std::max<int64_t>(one.peak_bytes, 0))) +
                      (one.passes ? ", enough" : ", not enough"));
  return lines;
}

}  // namespace snug
