#include "explain/verdict.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "explain/rest.h"
#include "torch/allocator_rules.h"
#include "torch/words.h"

namespace snug {

namespace {

double share(int64_t part, int64_t whole) { return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0; }

class Judge {
 public:
  explicit Judge(const Failure& failure) : f_(failure), at_(failure.moment), reading_(at_.reading()) {
    const MemoryTotals& totals = at_.replay.totals();
    active_ = totals.active_bytes;
    unused_ = totals.unused_bytes();
    v_.limit_bytes = checked_add(totals.reserved_bytes, f_.free_bytes.value_or(0));
    v_.contents = contents_at(at_);
    v_.asked = asked_at(at_);
    if (asks_for_logits()) v_.asked.logits = std::exchange(v_.asked.activations, 0) + v_.asked.logits;
    further_ = std::max(at_.asked_bytes, f_.course.further_bytes.value_or(0));
    v_.needed_bytes = checked_add(active_, std::max(at_.asked_bytes, tell_further()));
  }

  Verdict judge() && {
    if (is_wrong_shape()) {
      v_.cause = Cause::impossible_request;
    } else if (f_.free_bytes && *f_.free_bytes >= segment_bytes(at_.asked_bytes, {})) {
      v_.cause = Cause::memory_limit;
    } else if (const auto kept = grown()) {
      v_.cause = Cause::shortage;
      v_.filler = *kept;
    } else if (fits_packed()) {
      v_.cause = Cause::fragmentation;
    } else {
      v_.cause = Cause::shortage;
      v_.filler = filler();
    }
    if (v_.or_cause == v_.cause) v_.or_cause.reset();
    return std::move(v_);
  }

 private:
  // What the rest of the step takes beside what is held, and who tells; 0 if nobody does.
  int64_t tell_further() {
    if (f_.course.further_bytes) {
      v_.need_told = NeedTold::rounds;
      return *f_.course.further_bytes;
    }
    const auto expected = expected_bytes();
    // A run that holds more already is not the recipe's alone.
    if (expected && *expected >= checked_add(active_, at_.asked_bytes)) {
      v_.need_told = NeedTold::recipe;
      v_.recipe_engine = f_.expected->engine;
      return *expected - active_;
    }
    return tell_further_of_stage();
  }

  int64_t tell_further_of_stage() {
    if (const auto bytes = further_by_weights(at_, v_.contents, v_.asked, f_.stage, f_.merges)) {
      v_.need_told = NeedTold::weights;
      return *bytes;
    }
    // FSDP's backward: a layer's gradient and its copy in fp32 to be reduced, less the layer itself, which is given back
    // before (_fsdp_param_group.py, post_backward).
    constexpr int64_t kReduced = 2;
    const bool gathers = v_.contents.gathered > 0 && f_.stage == TorchStage::forward;
    if (!gathers && f_.stage != TorchStage::generate && f_.stage != TorchStage::evaluation) return 0;
    const auto bytes = further_by_layers(at_, v_.contents.layers, gathers ? kReduced : 0);
    if (bytes) v_.need_told = NeedTold::layers;
    return bytes.value_or(0);
  }

  std::optional<int64_t> expected_bytes() const {
    if (f_.expected == nullptr) return std::nullopt;
    const bool first = v_.contents.states == 0 || f_.stage == TorchStage::optimizer;
    if (!first) return f_.expected->later.from(f_.stage);
    return (f_.own_loop ? f_.expected->own_first : f_.expected->first).from(f_.stage);
  }

  // Of a causal language model of transformers: its loss, or its own linear module, which no block calls.
  bool asks_for_logits() const {
    if (reading_.part == Part::logits) return true;
    const auto path = at_.reader.modules().path(reading_.module);
    constexpr size_t kInBlocks = 5;  // of PeftModel, LoraModel, LlamaForCausalLM, LlamaModel, LlamaDecoderLayer
    if (path.size() < 2 || path.size() >= kInBlocks) return false;
    const ModuleCall& head = path.back();
    return head.name == "Linear" && contains(head.caller_file, "transformers/models/");
  }

  // One tensor larger than the device, or than half of it with little beside it and those of its size.
  bool is_wrong_shape() const {
    if (asks_for_logits()) return false;
    if (at_.asked_bytes > v_.limit_bytes) return true;
    int64_t alike = 0;
    for (const auto& [address, block] : at_.replay.live())
      if (block.requested_bytes == at_.asked_bytes) alike += block.bytes;
    return share(at_.asked_bytes, v_.limit_bytes) > 0.5 && share(active_ - alike, v_.limit_bytes) < 0.25;
  }

  // Held against what earlier rounds tell; where they tell nothing, against what is held: what a recipe or the weights tell
  // of the rest is of other contents too.
  bool try_without(std::string what, int64_t bytes) {
    const int64_t peak = checked_add(active_, further_) - bytes;
    v_.tried.push_back({std::move(what), peak, peak <= v_.limit_bytes});
    return v_.tried.back().passes;
  }

  // Fragmentation is the cause only if the rest of the round had fitted without holes. Where nothing tells the rest, what is
  // unused has to be much, for a device that fills up request by request has a few holes always; less of it will do for one
  // large request that is no copy of the logits, which come in several.
  bool fits_packed() {
    v_.tried.push_back({"holes", v_.needed_bytes, v_.needed_bytes <= v_.limit_bytes});
    if (!v_.tried.back().passes) return false;
    constexpr double kMuch = 0.35, kSome = 0.05, kLarge = 0.15;
    if (v_.whole()) return true;
    const double unused = share(unused_, v_.limit_bytes);
    if (unused >= 2 * kSome) v_.or_cause = Cause::fragmentation;
    return unused >= kMuch ||
           (unused >= kSome && share(at_.asked_bytes, v_.limit_bytes) >= kLarge && reading_.part != Part::logits);
  }

  // True if, without holes, what grows would take many rounds more to fill the device.
  bool lasts() const {
    constexpr double kMuch = 0.2;
    if (!f_.growth.over && share(f_.growth.bytes(), v_.limit_bytes) >= kMuch) return false;
    if (f_.growth.over && v_.needed_bytes <= v_.limit_bytes) return true;
    double a_round = 0;
    for (const Growing& one : f_.growth.list) a_round += static_cast<double>(one.bytes_a_step);
    const int64_t rounds = std::max<int64_t>(3, (f_.growth.rounds() + f_.growth.warm_up) / 4);
    return static_cast<double>(v_.limit_bytes - v_.needed_bytes) > a_round * static_cast<double>(rounds);
  }

  Filler filler() {
    if (const auto longer = longer_batch()) return *longer;
    if (const auto told = by_names()) return *told;
    const TorchStage stage = f_.stage;
    if (stage == TorchStage::load && v_.contents.second_weights > 0) return Filler::second_model;
    if (stage == TorchStage::load && v_.contents.weights > 0) return Filler::weights;
    if (stage == TorchStage::optimizer) return Filler::optimizer_temporaries;
    if (v_.contents.second_weights > 0 && try_without("the second set of weights", v_.contents.second_weights))
      return Filler::second_model;
    return by_contents();
  }

  // What grows without end is the cause even where holes were the last straw.
  std::optional<Filler> grown() {
    constexpr double kMuch = 0.05;
    const int64_t bytes = f_.growth.bytes();
    if (share(bytes, v_.limit_bytes) < kMuch || lasts() || !try_without("what earlier rounds left", bytes))
      return std::nullopt;
    const StackReading& most = at_.reader.read(f_.growth.list.front().stack);
    if (most.part == Part::cache || f_.stage == TorchStage::generate) return Filler::kv_cache;
    if (most.part == Part::collected) return Filler::kept_evaluation;
    constexpr size_t kOfAGraph = 5;  // lines whose results are kept; without a graph they are an output or two
    if (f_.growth.list.size() >= kOfAGraph) return Filler::kept_graphs;
    const bool evaluates = f_.stage == TorchStage::evaluation || most.stage.stage == TorchStage::evaluation;
    return evaluates ? Filler::kept_evaluation : Filler::kept_tensors;
  }

  std::optional<Filler> longer_batch() {
    if (f_.course.size_ratio < (f_.course.lengthening ? 1.02 : 1.1)) return std::nullopt;
    const auto further = static_cast<int64_t>(static_cast<double>(further_) * (1 - 1 / f_.course.size_ratio));
    const auto here =
        static_cast<int64_t>(static_cast<double>(active_ - f_.course.now().begin_bytes) * (1 - 1 / f_.course.size_ratio));
    if (!try_without("what this batch has more than those before", further + std::max<int64_t>(here, 0)))
      return std::nullopt;
    return f_.course.lengthening ? Filler::growing_lengths : Filler::long_batch;
  }

  std::optional<Filler> by_names() const {
    switch (reading_.part) {
      case Part::buckets: return Filler::buckets;
      case Part::gathered: return Filler::gathered;
      case Part::states: return Filler::optimizer_states;
      case Part::collected: return Filler::kept_evaluation;
      case Part::cache: return Filler::kv_cache;
      default: break;
    }
    if (f_.stage == TorchStage::generate) return Filler::kv_cache;
    if (f_.stage == TorchStage::save || reading_.part == Part::copied) return Filler::saving;
    return std::nullopt;
  }

  // What a kernel that never makes it would save, where it is a good part of what the batch takes. Logits come in several
  // copies: their own, one in fp32, its softmax, its gradient.
  std::optional<Filler> avoidable() {
    const Contents &c = v_.contents, &asked = v_.asked;
    const int64_t scores = c.scores + asked.scores, logits = c.logits + (f_.course.further_bytes ? 1 : 3) * asked.logits;
    const int64_t all = c.activations + c.temporaries + asked.activations + asked.temporaries + scores + logits;
    constexpr double kMuch = 0.33;
    if (share(scores, all) >= kMuch && try_without("attention's scores", scores)) return Filler::attention;
    if (share(logits, all) >= kMuch && try_without("the logits and their copies", c.logits + asked.logits))
      return Filler::logits;
    return std::nullopt;
  }

  // Gradients that are made beside DDP's buckets, which hold them too; these may have been there before recording began.
  Filler in_buckets_too(Filler filler) const { return filler == Filler::gradients && f_.in_ddp ? Filler::buckets : filler; }

  // The kind of content without which the run would have gone on; of several the largest.
  Filler by_contents() {
    if (const auto known = avoidable()) return *known;
    const Contents& c = v_.contents;
    struct Candidate {
      Filler filler;
      const char* without;
      int64_t bytes;
    };
    std::array<Candidate, 7> all{
        {{Filler::attention, "attention's scores", c.scores + v_.asked.scores},
         {Filler::logits, "the logits and their copies", c.logits + v_.asked.logits},
         {Filler::activations, "activations", c.activations + c.temporaries + v_.asked.activations + v_.asked.temporaries},
         {Filler::gradients, "gradients", c.gradients + v_.asked.gradients},
         {Filler::kv_cache, "the cache of keys and values", c.cache},
         {Filler::buckets, "DDP's buckets", c.buckets},
         {Filler::gathered, "gathered weights", c.gathered}}};
    std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) { return a.bytes > b.bytes; });
    for (const Candidate& one : all)
      if (one.bytes > 0 && try_without(one.without, one.bytes)) return in_buckets_too(one.filler);
    if (c.weights > v_.limit_bytes / 2) return Filler::weights;
    return all.front().bytes > 0 ? all.front().filler : Filler::none;
  }

  const Failure& f_;
  const MomentOfFailure& at_;
  const StackReading& reading_;
  int64_t active_ = 0, unused_ = 0;
  int64_t further_ = 0;  // what the request takes, or the rest of the round by those before
  Verdict v_;
};

}  // namespace

std::string_view name_of(NeedTold told) {
  switch (told) {
    case NeedTold::rounds: return "earlier steps";
    case NeedTold::recipe: return "recipe";
    case NeedTold::weights: return "weights";
    case NeedTold::layers: return "layers";
    case NeedTold::nobody: break;
  }
  return "";
}

Verdict judge(const Failure& failure) { return Judge(failure).judge(); }

}  // namespace snug
