#include "advise/levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/compile.h"
#include "recipe/keys.h"

namespace snug {

namespace {

bool has_module(const Program& program, std::string_view name) {
  return std::any_of(program.weights.begin(), program.weights.end(),
                     [&](const Weight& weight) { return weight.parameter.module == name; });
}

// Beside the alternatives that keep the task as it is: what trains something else, or on less.
void add_real_changes(const Plan& plan, std::vector<AlternativeGroup>& groups) {
  const Recipe& now = plan.recipe;
  const auto group = [&](std::string_view name, std::vector<Alternative> choices) {
    if (!choices.empty()) groups.push_back({name, std::move(choices)});
  };
  if (!now.bf16 && !now.fp16)
    group("precision", {{{{"bf16", "true"}}, Effect::small, "weights and saved activations rounded to bf16"}});
  std::vector<Alternative> shorter;
  for (int64_t length = plan.program.seq_len / 2; length >= 64; length /= 2)
    shorter.push_back({{{"max_length", std::to_string(length)}}, Effect::real, "longer documents are cut"});
  group("length", std::move(shorter));
  if (now.method == Method::full)
    return group("method", {{{{"method", "lora"}}, Effect::real, "an adapter is trained instead of all weights"},
                            {{{"method", "lora"}, {"load_in_4bit", "true"}},
                             Effect::real,
                             "an adapter is trained on frozen weights in 4 bits (QLoRA)"}});
  if (now.lora.r > 1)
    group("rank", {{{{"lora_r", std::to_string(now.lora.r / 2)}}, Effect::real, "adapters of half the rank"}});
  if (has_module(plan.program, "q_proj") && has_module(plan.program, "v_proj") &&
      (now.lora.target_modules.size() > 2 || now.lora.target_modules == std::vector<std::string>{"all-linear"}))
    group("targets", {{{{"lora_target_modules", "q_proj,v_proj"}}, Effect::real, "adapters on queries and values alone"}});
  if (!now.lora.modules_to_save.empty())
    group("saved modules",
          {{{{"lora_modules_to_save", ""}}, Effect::real, "nothing is trained in full beside the adapter"}});
  if (now.lora.use_dora) group("DoRA", {{{{"use_dora", "false"}}, Effect::real, "LoRA without magnitudes"}});
}

// What several processes may share out, or cut among more of them.
void add_sharing(const Recipe& now, std::vector<AlternativeGroup>& groups) {
  constexpr const char* kNotes[] = {"", "each process holds a part of the optimizer's states",
                                    "each process holds a part of states and gradients",
                                    "each process holds a part of states, gradients and weights"};
  const Parallel& parallel = now.parallel;
  if (parallel.ranks == 1) return;
  std::vector<Alternative> stages, copies;
  for (int64_t stage = parallel.zero_stage + 1; stage <= 3; ++stage)
    stages.push_back({{{"zero_stage", std::to_string(stage)}}, Effect::none, kNotes[stage]});
  for (int64_t fewer = parallel.replicas / 2; fewer >= 1; fewer /= 2)
    if (parallel.ranks % fewer == 0)
      copies.push_back({{{"dp_replicate_size", std::to_string(fewer)}}, Effect::none, "fewer copies, each cut among more"});
  groups.push_back({"sharing", std::move(stages)});
  groups.push_back({"copies", std::move(copies)});
}

// Where the disk has too little room.
void add_nearer_homes(const Recipe& now, std::vector<AlternativeGroup>& groups) {
  Recipe near = now;
  near.pages_states = false;
  if (states_lie_far(now))
    groups.push_back({"home of states",
                      {{{{"optim", find_key("optim")->get(near)}, {"offload_optimizer", "none"}},
                        Effect::none,
                        "states stay in memory"}}});
  if (now.offload_activations)
    groups.push_back(
        {"home of activations", {{{{"offload_activations", "none"}}, Effect::none, "what blocks save stays in memory"}}});
  if (now.offload_weights)
    groups.push_back(
        {"home of weights", {{{{"offload_weights", "none"}}, Effect::none, "matrices of blocks stay in memory"}}});
  if (now.offload_gradients)
    groups.push_back({"home of gradients", {{{{"offload_gradients", "none"}}, Effect::none, "gradients stay in memory"}}});
}

// Settings that the recipe has already.
void leave_out_what_is_so(Alternative& choice, const Recipe& now) {
  const Recipe changed = choice.applied_to(now);
  std::erase_if(choice.settings, [&](const Setting& setting) {
    const Key* key = find_key(setting.key);
    return key != nullptr && key->get && key->get(changed) == key->get(now);
  });
}

std::vector<AlternativeGroup> groups_of(const Plan& plan, const std::vector<std::string>& fixed) {
  const Recipe& now = plan.recipe;
  std::vector<AlternativeGroup> groups;
  const int64_t layers = plan.model.layers;
  const int64_t recomputed = !now.gradient_checkpointing     ? 0
                             : now.checkpoint_layers.empty() ? layers
                                                             : static_cast<int64_t>(now.checkpoint_layers.size());
  std::vector<Alternative> recompute;
  if (!now.gradient_checkpointing && !plan.fits()) recompute.push_back(recomputing_to_fit());
  if (recomputed < layers / 2 && plan.fits()) recompute.push_back(recomputing(layers / 2, layers));
  if (recomputed < layers) recompute.push_back(recomputing(layers, layers));
  groups.push_back({"recomputation", std::move(recompute)});
  if (!now.tiled_mlp && plan.model.experts.count == 0 && plan.program.batch * plan.program.seq_len > plan.model.hidden_size)
    groups.push_back({"MLP", {{{{"tiled_mlp", "true"}}, Effect::none, "MLPs run tile by tile"}}});
  std::vector<Alternative> smaller;
  const int64_t effective = now.batch * now.accumulation;
  for (int64_t batch = now.batch - 1; batch >= 1; --batch)
    if (effective % batch == 0) smaller.push_back(micro_batches_of(batch, now));
  groups.push_back({"micro-batch", std::move(smaller)});
  for (AlternativeGroup& group : alternatives(now, {}))
    if (group.name != kDisk || plan.target.kind == TargetKind::cpu) groups.push_back(std::move(group));
  for (AlternativeGroup& group : groups)
    if (group.name == "optimizer" && now.optim != Optimizer::sgd)
      group.choices.push_back({{{"optim", "sgd"}}, Effect::real, "another rule: no states"});
  add_sharing(now, groups);
  if (plan.overfull_home()) add_nearer_homes(now, groups);
  add_real_changes(plan, groups);
  for (AlternativeGroup& group : groups)
    for (Alternative& choice : group.choices) leave_out_what_is_so(choice, now);
  for (AlternativeGroup& group : groups)
    std::erase_if(group.choices, [&](const Alternative& choice) {
      return !is_sound(choice.applied_to(now)) ||
             std::any_of(choice.settings.begin(), choice.settings.end(), [&](const Setting& setting) {
               return std::find(fixed.begin(), fixed.end(), setting.key) != fixed.end();
             });
    });
  std::erase_if(groups, [](const AlternativeGroup& group) { return group.choices.empty(); });
  return groups;
}

// The set that gives up least, found by adding up: all that one effect allows, then as few of them as suffice.
class SetSearch {
 public:
  SetSearch(const Recipe& now, Engine& engine, const std::vector<AlternativeGroup>& groups)
      : now_(now), engine_(engine), now_bytes_(engine.about(now).bytes) {
    for (size_t group = 0; group < groups.size(); ++group)
      for (const Alternative& choice : groups[group].choices)
        if (const Need need = engine.about(choice.applied_to(now)); need.bytes != kNever)
          singles_.push_back({group, &choice, need});
    std::stable_sort(singles_.begin(), singles_.end(),
                     [](const Single& a, const Single& b) { return a.need.step_seconds < b.need.step_seconds; });
  }

  std::optional<LeverSet> run(std::optional<LeverSet>& closest) {
    for (const Effect effect : {Effect::none, Effect::small, Effect::real}) {
      // The fastest single change.
      for (const Single& single : singles_)
        if (single.choice->effect <= effect && single.need.bytes <= engine_.budget_bytes())
          if (auto made = made_if_it_fits({&single})) return made;
      if (const auto set = smallest(effect))
        if (auto made = made_if_it_fits(*set)) return made;
    }
    closest = make(strongest(Effect::real));
    closest->peak_bytes = engine_.exactly(closest->recipe).bytes;
    return std::nullopt;
  }

 private:
  struct Single {
    size_t group;
    const Alternative* choice;
    Need need;
  };
  using Set = std::vector<const Single*>;

  std::optional<LeverSet> made_if_it_fits(const Set& set) {
    LeverSet made = make(set);
    made.peak_bytes = engine_.exactly(made.recipe).bytes;
    return made.peak_bytes <= engine_.budget_bytes() ? std::optional(std::move(made)) : std::nullopt;
  }

  LeverSet make(const Set& set) const {
    LeverSet made{.changes = {}, .recipe = now_};
    for (const Single* single : set) {
      made.recipe = single->choice->applied_to(std::move(made.recipe));
      made.changes.push_back(*single->choice);
      made.effect = std::max(made.effect, single->choice->effect);
    }
    return made;
  }

  bool fits(const Set& set) const {
    const Recipe recipe = make(set).recipe;
    return is_sound(recipe) && engine_.about(recipe).bytes <= engine_.budget_bytes() &&
           engine_.exactly(recipe).bytes <= engine_.budget_bytes();
  }

  // Of each group what saves most, up to an effect; without what does not go with a stronger one.
  Set strongest(Effect effect) const {
    std::map<size_t, const Single*> best;
    for (const Single& single : singles_) {
      if (single.choice->effect > effect) continue;
      const Single*& have = best[single.group];
      if (have == nullptr || single.need.bytes < have->need.bytes) have = &single;
    }
    Set all, set;
    for (const auto& [group, single] : best)
      if (single->need.bytes < now_bytes_) all.push_back(single);
    std::sort(all.begin(), all.end(), [](const Single* a, const Single* b) { return a->need.bytes < b->need.bytes; });
    for (const Single* single : all) {
      set.push_back(single);
      if (!is_sound(make(set).recipe)) set.pop_back();
    }
    return set;
  }

  // All together, then the strongest first until they suffice, then without those that are not needed.
  std::optional<Set> smallest(Effect effect) const {
    const Set all = strongest(effect);
    if (all.size() < 2 || !fits(all)) return std::nullopt;
    Set set;
    for (const Single* single : all) {
      set.push_back(single);
      if (set.size() >= 2 && fits(set)) break;
    }
    for (size_t i = 0; i + 1 < set.size();) {
      Set without = set;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
      if (fits(without)) {
        set = std::move(without);
      } else {
        ++i;
      }
    }
    return set;
  }

  const Recipe& now_;
  Engine& engine_;
  int64_t now_bytes_;
  std::vector<Single> singles_;
};

}  // namespace

std::vector<Lever> levers(const Plan& plan, const std::vector<std::string>& fixed) {
  SnugEngine engine(plan.model, plan.target, plan.budget_bytes);
  return levers(plan, engine, fixed);
}

std::vector<Lever> levers(const Plan& plan, Engine& engine, const std::vector<std::string>& fixed) {
  std::vector<Lever> list;
  const auto token_seconds = [&](const Need& need, const Recipe& recipe) {
    const int64_t tokens = recipe.batch * recipe.accumulation * sequence_length(plan.model, recipe);
    return need.step_seconds / static_cast<double>(tokens);
  };
  const Need now = engine.exactly(plan.recipe);
  const double seconds = token_seconds(now, plan.recipe);
  for (const AlternativeGroup& group : groups_of(plan, fixed))
    for (const Alternative& choice : group.choices) {
      const Recipe recipe = choice.applied_to(plan.recipe);
      const Need changed = engine.exactly(recipe);
      if (changed.bytes >= now.bytes) continue;
      Lever lever{.change = choice, .peak_bytes = changed.bytes, .saved_bytes = now.bytes - changed.bytes};
      if (seconds > 0) lever.slowdown = token_seconds(changed, recipe) / seconds;
      list.push_back(std::move(lever));
    }
  std::stable_sort(list.begin(), list.end(), [](const Lever& a, const Lever& b) {
    return a.change.effect != b.change.effect ? a.change.effect < b.change.effect : a.saved_bytes > b.saved_bytes;
  });
  return list;
}

std::optional<LeverSet> smallest_set_that_fits(const Plan& plan, std::optional<LeverSet>& closest,
                                               const std::vector<std::string>& fixed) {
  SnugEngine engine(plan.model, plan.target, plan.budget_bytes);
  return smallest_set_that_fits(plan, engine, closest, fixed);
}

std::optional<LeverSet> smallest_set_that_fits(const Plan& plan, Engine& engine, std::optional<LeverSet>& closest,
                                               const std::vector<std::string>& fixed) {
  closest.reset();
  const std::vector<AlternativeGroup> groups = groups_of(plan, fixed);
  return SetSearch(plan.recipe, engine, groups).run(closest);
}

}  // namespace snug
