#include "advise/pytorch_fit.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "advise/fit_space.h"

namespace snug {

namespace {

// What tensors hold is known that well from a few layers, and what the allocator reserves beside it from a run that differs
// in its optimizer alone.
constexpr double kSurely = 1.02, kNearly = 1.02;

// What PyTorch's trainers do as well: snug alone has moments in bf16, updates in backward, weights without fp32 copies and
// pages on disk; paged Lion is not modelled as such; how a quantized model is prepared is the trainer's habit.
bool pytorch_has(const Alternative& alternative) {
  return !is_of_disk(alternative) &&
         std::none_of(alternative.settings.begin(), alternative.settings.end(), [](const Setting& setting) {
           if (setting.key == "optim")
             return setting.value == "adamw_bf16_states" || setting.value.starts_with("paged_lion");
           return setting.key == "master_weights" || setting.key == "optimizer_in_bwd" ||
                  setting.key == "prepare_model_for_kbit_training";
         });
}

struct Candidate {
  size_t structure = 0;
  int64_t batch = 1;
  int checkpoints = 0;  // 0: none, or as asked; 1: of all blocks
  double seconds = 0, score = 0;
};

class PyTorchSpace {
 public:
  PyTorchSpace(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed)
      : structures_(structures(asked, fixed, pytorch_has)),
        batches_(micro_batches(asked)),
        asked_(asked),
        layers_(model.layers),
        frees_checkpoints_(!is_fixed(fixed, "gradient_checkpointing") && asked.checkpoint_layers.empty()) {}

  Recipe recipe(const Candidate& c) const {
    Recipe recipe = micro_batches_of(c.batch, asked_).applied_to(structures_[c.structure].recipe);
    return frees_checkpoints_ ? recomputing(c.checkpoints == 0 ? 0 : layers_, layers_).applied_to(std::move(recipe))
                              : recipe;
  }
  const Structure& structure(const Candidate& c) const { return structures_[c.structure]; }
  const Recipe& asked() const { return asked_; }
  const std::vector<int64_t>& batches() const { return batches_; }
  bool frees_checkpoints() const { return frees_checkpoints_; }

  // Of each structure, those that need least first.
  std::vector<Candidate> all() const {
    std::vector<Candidate> list;
    for (size_t structure = 0; structure < structures_.size(); ++structure)
      for (const int64_t batch : batches_)
        for (int checkpoints = frees_checkpoints_ ? 1 : 0; checkpoints >= 0; --checkpoints)
          if (const Candidate c{structure, batch, checkpoints}; is_sound(recipe(c))) list.push_back(c);
    return list;
  }

 private:
  std::vector<Structure> structures_;
  std::vector<int64_t> batches_;
  Recipe asked_;
  int64_t layers_;
  bool frees_checkpoints_;
};

// The same without an optimizer's states: no optimizer needs less.
Recipe without_states(Recipe recipe) {
  recipe.optim = Optimizer::sgd;
  recipe.pages_states = false;
  recipe.momentum = 0;
  return recipe;
}

// Which micro-batches, with and without checkpoints, are out of reach whatever the optimizer. Structures that keep the base
// alike share what is known of them.
class Reach {
 public:
  Reach(const PyTorchSpace& space, PyTorchEngine& engine) : space_(space), engine_(engine) {}

  // About what the candidate needs without states, bytes.
  int64_t least_bytes(const Candidate& c) { return engine_.about_bytes(without_states(space_.recipe(c))); }

  bool is_beyond(const Candidate& c) {
    const Quantize& kept = space_.structure(c).recipe.quantize;
    Known& known = known_[{kept.in_4bit, kept.in_8bit, kept.double_quant}];
    const auto no_more = [&](const Candidate& a, const Candidate& b) {  // a needs no more than b
      return a.batch <= b.batch && a.checkpoints >= b.checkpoints;
    };
    if (std::any_of(known.beyond.begin(), known.beyond.end(), [&](const Candidate& k) { return no_more(k, c); }))
      return true;
    if (std::any_of(known.within.begin(), known.within.end(), [&](const Candidate& k) { return no_more(c, k); }))
      return false;
    const bool beyond = static_cast<double>(least_bytes(c)) > kSurely * static_cast<double>(engine_.budget_bytes());
    (beyond ? known.beyond : known.within).push_back(c);
    return beyond;
  }

  // Halves the micro-batches of a structure, so that few are asked for one by one.
  void explore(Candidate c) {
    const std::vector<int64_t>& batches = space_.batches();
    for (c.checkpoints = space_.frees_checkpoints() ? 1 : 0; c.checkpoints >= 0; --c.checkpoints)
      for (size_t low = 0, high = batches.size(); low < high;) {
        const size_t middle = low + (high - low) / 2;
        c.batch = batches[middle];
        if (is_beyond(c)) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
  }

 private:
  struct Known {
    std::vector<Candidate> beyond, within;
  };
  const PyTorchSpace& space_;
  PyTorchEngine& engine_;
  std::map<std::array<bool, 3>, Known> known_;
};

class BestFirst {
 public:
  BestFirst(const PyTorchSpace& space, const PyTorchSearch& search, PyTorchEngine& engine)
      : space_(space), search_(search), engine_(engine), reach_(space, engine) {}

  FitReport run() {
    std::vector<Candidate> candidates = space_.all();
    report_.candidates = static_cast<int64_t>(candidates.size());
    const int64_t followed = engine_.followed(), looked_at = engine_.looked_at();
    for (Candidate& c : candidates) {
      c.seconds = engine_.step_seconds(space_.recipe(c));
      c.score = c.seconds * (1 + space_.structure(c).penalty);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
    for (const Candidate& c : candidates) reach_.explore(c);
    for (const Candidate& c : candidates) {
      if (report_.front.size() >= search_.lines) break;
      consider(c);
    }
    if (report_.front.empty()) find_least(candidates);
    report_.compiled = engine_.looked_at() - looked_at;
    report_.laid_out = engine_.followed() - followed;
    return std::move(report_);
  }

 private:
  void consider(const Candidate& c) {
    if (reach_.is_beyond(c) || is_known_too_large(c) || !can_say(c)) return;
    const Effect effect = space_.structure(c).effect;
    const auto beaten = [&](int64_t bytes) {
      return !report_.front.empty() && is_beaten(c.seconds, bytes, effect, report_.front);
    };
    if (beaten(reach_.least_bytes(c))) return;
    const Recipe recipe = space_.recipe(c);
    const int64_t about = engine_.about_bytes(recipe);
    const auto budget = static_cast<double>(engine_.budget_bytes());
    if (about == kNever || static_cast<double>(about) > kSurely * budget) return note_too_large(c);
    const double reserved = static_cast<double>(about) * spread_of(c);
    if (reserved > kNearly * budget || beaten(static_cast<int64_t>(reserved / kNearly))) return;
    const eager::Plan* plan = engine_.follow(recipe);
    if (plan != nullptr) spreads_[shape_of(c)] = static_cast<double>(plan->device_high_bytes) / static_cast<double>(about);
    if (plan == nullptr || plan->device_high_bytes > engine_.budget_bytes()) return note_too_large(c);
    if (!beaten(plan->device_high_bytes)) report_.front.push_back(choice_of(c, *plan));
  }

  // Candidates that differ in their optimizer alone.
  using Shape = std::tuple<bool, bool, bool, int64_t, int>;
  Shape shape_of(const Candidate& c) const {
    const Quantize& kept = space_.structure(c).recipe.quantize;
    return {kept.in_4bit, kept.in_8bit, kept.double_quant, c.batch, c.checkpoints};
  }
  // What is reserved for each byte that tensors hold, as far as it is known.
  double spread_of(const Candidate& c) const {
    const auto known = spreads_.find(shape_of(c));
    return known == spreads_.end() ? 1 : known->second;
  }

  // Whether the same with fewer sequences or more checkpoints was.
  bool is_known_too_large(const Candidate& c) const {
    const auto known = too_large_.find(c.structure);
    return known != too_large_.end() && std::any_of(known->second.begin(), known->second.end(), [&](const Candidate& other) {
             return other.batch <= c.batch && other.checkpoints >= c.checkpoints;
           });
  }
  void note_too_large(const Candidate& c) { too_large_[c.structure].push_back(c); }

  bool can_say(const Candidate& c) const { return !search_.can_say || search_.can_say(space_.recipe(c)); }

  FitChoice choice_of(const Candidate& c, const eager::Plan& plan) const {
    const Structure& structure = space_.structure(c);
    FitChoice choice{.recipe = space_.recipe(c),
                     .settings = {},
                     .effect = structure.effect,
                     .given_up = structure.given_up,
                     .peak_bytes = plan.device_high_bytes,
                     .step_seconds = c.seconds,
                     .score = c.score};
    choice.settings = differences(space_.asked(), choice.recipe);
    choice.fuses_adam = engine_.side().setup(choice.recipe).optimizer == eager::Optimizer::adamw_fused;
    return choice;
  }

  // One sequence at a time, with checkpoints: of all structures the least.
  void find_least(const std::vector<Candidate>& candidates) {
    const Candidate* least = nullptr;
    int64_t least_bytes = kNever;
    for (const Candidate& c : candidates) {
      const bool smaller = std::none_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
        return other.structure == c.structure && other.batch <= c.batch && other.checkpoints >= c.checkpoints &&
               &other != &c;
      });
      if (!smaller || !can_say(c)) continue;
      const int64_t about = engine_.about_bytes(space_.recipe(c));
      if (about < least_bytes) std::tie(least, least_bytes) = std::pair(&c, about);
    }
    if (least == nullptr) return;
    if (const eager::Plan* plan = engine_.follow(space_.recipe(*least))) report_.least = choice_of(*least, *plan);
  }

  const PyTorchSpace& space_;
  const PyTorchSearch& search_;
  PyTorchEngine& engine_;
  Reach reach_;
  FitReport report_;
  std::map<size_t, std::vector<Candidate>> too_large_;
  std::map<Shape, double> spreads_;
};

}  // namespace

FitReport fit_in_pytorch(const ModelSpec& model, const Recipe& asked, const PyTorchSearch& search, PyTorchEngine& engine) {
  const PyTorchSpace space(model, asked, search.fixed);
  return BestFirst(space, search, engine).run();
}

std::vector<FitChoice> pytorch_space(const ModelSpec& model, const Recipe& asked, const PyTorchSearch& search) {
  const PyTorchSpace space(model, asked, search.fixed);
  std::vector<FitChoice> choices;
  for (const Candidate& c : space.all()) {
    const Structure& structure = space.structure(c);
    choices.push_back({.recipe = space.recipe(c),
                       .settings = {},
                       .effect = structure.effect,
                       .given_up = structure.given_up,
                       .score = 1 + structure.penalty});
  }
  return choices;
}

}  // namespace snug
