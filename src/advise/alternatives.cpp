#include "advise/alternatives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "recipe/keys.h"

namespace snug {

namespace {

bool changes(const Recipe& recipe, const Setting& setting) {
  Recipe changed = recipe;
  apply(changed, setting.key, setting.value);
  const Key& key = *find_key(setting.key);
  return key.get(changed) != key.get(recipe);
}

// A group as it is written below, without what is fixed, what the recipe has already and what makes no sense with it.
class Group {
 public:
  Group(std::string_view name, const Recipe& recipe, const std::vector<std::string>& fixed)
      : recipe_(recipe), fixed_(fixed) {
    group_.name = name;
  }

  Group& choice(std::vector<Setting> settings, Effect effect, std::string note) {
    const auto is_fixed = [&](const Setting& s) { return std::find(fixed_.begin(), fixed_.end(), s.key) != fixed_.end(); };
    const bool new_here =
        std::any_of(settings.begin(), settings.end(), [&](const Setting& s) { return changes(recipe_, s); });
    if (!new_here || std::any_of(settings.begin(), settings.end(), is_fixed)) return *this;
    group_.choices.push_back({std::move(settings), effect, std::move(note)});
    return *this;
  }

  void add_to(std::vector<AlternativeGroup>& groups) {
    if (!group_.choices.empty()) groups.push_back(std::move(group_));
  }

 private:
  const Recipe& recipe_;
  const std::vector<std::string>& fixed_;
  AlternativeGroup group_;
};

void add_quantization(Group& group, const Recipe& recipe) {
  if (recipe.method == Method::full) return;
  if (!recipe.quantize.any()) {
    group.choice({{"load_in_8bit", "true"}}, Effect::small, "frozen linears in 8 bits")
        .choice({{"load_in_4bit", "true"}}, Effect::small, "frozen linears in 4 bits (NF4, scales quantized too)");
  } else if (recipe.quantize.in_8bit) {
    group.choice({{"load_in_8bit", "false"}, {"load_in_4bit", "true"}}, Effect::small,
                 "frozen linears in 4 bits instead of 8");
  } else if (!recipe.quantize.double_quant) {
    group.choice({{"bnb_4bit_use_double_quant", "true"}}, Effect::small, "the blocks' scales are quantized too");
  }
}

void add_optimizers(Group& group, const Recipe& recipe) {
  const bool adamw = recipe.optim == Optimizer::adamw, lion = recipe.optim == Optimizer::lion;
  if (adamw) {
    group.choice({{"optim", "adamw_bf16_states"}}, Effect::small, "moments in bf16, rounded stochastically")
        .choice({{"optim", "adamw_8bit"}}, Effect::small, "moments in 8 bits")
        .choice({{"optim", "paged_adamw_32bit"}}, Effect::none, "states page in for each step")
        .choice({{"optim", "paged_adamw_8bit"}}, Effect::small, "moments in 8 bits, which page in for each step");
  }
  if (recipe.optim == Optimizer::adamw_8bit)
    group.choice({{"optim", "paged_adamw_8bit"}}, Effect::none, "states page in for each step");
  if (lion) {
    group.choice({{"optim", "lion_8bit"}}, Effect::small, "momentum in 8 bits")
        .choice({{"optim", "paged_lion_32bit"}}, Effect::none, "states page in for each step")
        .choice({{"optim", "paged_lion_8bit"}}, Effect::small, "momentum in 8 bits, which pages in for each step");
  }
  if (recipe.optim == Optimizer::lion_8bit)
    group.choice({{"optim", "paged_lion_8bit"}}, Effect::none, "states page in for each step");
  group.choice({{"optim", "lion_32bit"}}, Effect::real, "another rule: one momentum; needs another learning rate")
      .choice({{"optim", "lion_8bit"}}, Effect::real, "another rule: one momentum, in 8 bits")
      .choice({{"optim", "adafactor"}}, Effect::real, "another rule: squares of rows and columns alone");
}

}  // namespace

const char* name_of(Effect effect) {
  constexpr const char* kNames[] = {"none", "small", "real"};
  return kNames[static_cast<int>(effect)];
}

bool is_of_disk(const Alternative& choice) {
  return std::any_of(choice.settings.begin(), choice.settings.end(),
                     [](const Setting& setting) { return setting.key.starts_with("offload_"); });
}

Recipe Alternative::applied_to(Recipe recipe) const {
  for (const Setting& setting : settings) apply(recipe, setting.key, setting.value);
  return recipe;
}

std::vector<Setting> differences(const Recipe& from, const Recipe& to) {
  std::vector<Setting> settings;
  for (const Key& key : recipe_keys())
    if (key.get && key.get(from) != key.get(to)) settings.push_back({std::string(key.name), key.get(to)});
  return settings;
}

bool is_sound(const Recipe& recipe) {
  try {
    validate(recipe);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<AlternativeGroup> alternatives(const Recipe& recipe, const std::vector<std::string>& fixed) {
  std::vector<AlternativeGroup> groups;
  Group quantization("quantization", recipe, fixed);
  add_quantization(quantization, recipe);
  quantization.add_to(groups);
  Group optimizer("optimizer", recipe, fixed);
  add_optimizers(optimizer, recipe);
  optimizer.add_to(groups);
  if (recipe.method == Method::full && (recipe.bf16 || recipe.fp16)) {
    Group master("master weights", recipe, fixed);
    master.choice({{"master_weights", "false"}}, Effect::real, "no fp32 copy: steps below bf16's precision are lost");
    master.add_to(groups);
  }
  if (recipe.method == Method::full) {
    Group in_backward("optimizer in backward", recipe, fixed);
    in_backward.choice({{"optimizer_in_bwd", "true"}}, Effect::none,
                       "each weight is updated as soon as its gradient is complete");
    in_backward.add_to(groups);
  }
  if (recipe.quantize.upcast) {
    Group upcast("upcast", recipe, fixed);
    upcast.choice({{"prepare_model_for_kbit_training", "false"}}, Effect::small, "what is not quantized stays in bf16");
    upcast.add_to(groups);
  }
  Group disk(kDisk, recipe, fixed);
  const Setting all_inputs{"checkpoint_inputs", "0"};  // either they wait there, or they are made again
  disk.choice({{"offload_activations", "disk"}, all_inputs}, Effect::none, "what blocks save waits on disk");
  if (recipe.method == Method::full) {
    disk.choice({{"offload_activations", "disk"}, {"offload_weights", "disk"}, {"offload_gradients", "disk"}, all_inputs},
                Effect::none, "what blocks save, their matrices and gradients wait on disk");
  } else {
    disk.choice({{"offload_activations", "disk"}, {"offload_weights", "disk"}, all_inputs}, Effect::none,
                "what blocks save and frozen weights wait on disk");
  }
  disk.add_to(groups);
  return groups;
}

Alternative recomputing(int64_t count, int64_t layers) {
  if (count == 0)
    return {{{"gradient_checkpointing", "false"},
             {"checkpoint_layers", "all"},
             {"checkpoint_parts", "all"},
             {"checkpoint_inputs", "0"}},
            Effect::none,
            "nothing is recomputed"};
  if (count == layers)
    return {{{"gradient_checkpointing", "true"}, {"checkpoint_layers", "all"}}, Effect::none, "every block is recomputed"};
  std::string list;
  for (int64_t layer = 0; layer < count; ++layer) list += (layer == 0 ? "" : ",") + std::to_string(layer);
  return {{{"gradient_checkpointing", "true"}, {"checkpoint_layers", std::move(list)}, {"checkpoint_inputs", "0"}},
          Effect::none,
          fmt::format("the first {} blocks are recomputed", count)};
}

Alternative recomputing_to_fit() {
  return {{{"gradient_checkpointing", "auto"},
           {"checkpoint_layers", "all"},
           {"checkpoint_parts", "all"},
           {"checkpoint_inputs", "0"}},
          Effect::none,
          "of each block what costs least time is recomputed, until it fits"};
}

Alternative micro_batches_of(int64_t batch, const Recipe& recipe) {
  const int64_t effective = recipe.batch * recipe.accumulation;
  return {{{"per_device_train_batch_size", std::to_string(batch)},
           {"gradient_accumulation_steps", std::to_string(effective / batch)}},
          Effect::none,
          "the same effective batch in other micro-batches"};
}

}  // namespace snug
