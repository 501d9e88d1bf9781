#include "recipe/keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/edit_distance.h"
#include "base/error.h"
#include "recipe/checkpoint_keys.h"
#include "recipe/foreign_keys.h"
#include "recipe/key_table.h"
#include "recipe/offload_keys.h"
#include "recipe/parallel_keys.h"
#include "recipe/quantize_keys.h"
#include "recipe/schedule_keys.h"

namespace snug {

namespace {

std::string with_underscores(std::string_view name) {
  std::string text(name.substr(0, 200));
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

Applied apply_values(Recipe& recipe, std::string_view name, KeyValues values, const std::string& where) {
  try {
    if (const Key* key = find_key(name)) {
      key->set(recipe, values);
      return key->foreign && key->foreign(values) ? Applied::passed_over : Applied::set;
    }
    if (pass_over_foreign_key(with_underscores(name), values)) return Applied::passed_over;
  } catch (const Error& error) {
    throw Error(error.problem(), where, error.mend());
  }
  const std::string nearest = nearest_key(name);
  throw Error(fmt::format("there is no key '{}'", name.substr(0, 200)), where,
              nearest.empty() ? "`snug help keys` lists them" : fmt::format("did you mean '{}'?", nearest));
}

}  // namespace

const std::vector<Key>& recipe_keys() {
  static const std::vector<Key> table = make_key_table();
  return table;
}

const Key* find_key(std::string_view name) {
  const std::string asked = with_underscores(name);
  for (const Key& key : recipe_keys()) {
    if (key.name == asked || std::find(key.aliases.begin(), key.aliases.end(), asked) != key.aliases.end()) return &key;
  }
  return nullptr;
}

// Whether `part` are whole words of the name: "dropout" of lora_dropout.
static bool has_words(std::string_view name, std::string_view part) {
  return ("_" + std::string(name) + "_").find("_" + std::string(part) + "_") != std::string::npos;
}

std::string nearest_key(std::string_view name) {
  const std::string asked = with_underscores(name);
  std::string_view nearest, holding;
  int64_t least = most_slips(asked.size()) + 1;
  for (const Key& key : recipe_keys()) {
    int64_t distance = edit_distance(asked, key.name);
    for (const std::string_view alias : key.aliases) distance = std::min(distance, edit_distance(asked, alias));
    if (has_words(key.name, asked) && (holding.empty() || key.name.size() < holding.size())) holding = key.name;
    if (distance >= least) continue;
    least = distance;
    nearest = key.name;
  }
  return std::string(nearest.empty() || (least > 1 && !holding.empty()) ? holding : nearest);
}

Applied apply(Recipe& recipe, std::string_view key, std::string_view value, const std::string& where) {
  const std::string text(value);
  return apply_values(recipe, key, KeyValues(&text, 1), where);
}

Applied apply_list(Recipe& recipe, std::string_view key, KeyValues values, const std::string& where) {
  return apply_values(recipe, key, values, where);
}

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& mend) { throw Error(what, "", mend); }

void at_least(std::string_view key, int64_t value, int64_t low) {
  if (value < low) refuse(fmt::format("{} is {}", key, value), fmt::format("give at least {}", low));
}

void validate_lora(const Recipe& recipe) {
  if (recipe.method == Method::lora) {
    at_least("lora_r", recipe.lora.r, 1);
    const auto& targets = recipe.lora.target_modules;
    if (targets.size() > 1 && std::find(targets.begin(), targets.end(), "all-linear") != targets.end()) {
      refuse("lora_target_modules names all-linear beside other modules",
             "all-linear already holds every linear but the head");
    }
    for (const std::string& module : recipe.lora.modules_to_save) {
      if (std::find(targets.begin(), targets.end(), module) != targets.end()) {
        refuse(fmt::format("'{}' stands in lora_target_modules and in lora_modules_to_save", module), "keep one");
      }
    }
  } else if (!recipe.lora.modules_to_save.empty()) {
    refuse("lora_modules_to_save has no meaning with method: full", "remove it, or set method: lora");
  }
}

}  // namespace

void validate(const Recipe& recipe) {
  at_least("per_device_train_batch_size", recipe.batch, 1);
  at_least("gradient_accumulation_steps", recipe.accumulation, 1);
  if (recipe.seq_len != 0) at_least("max_length", recipe.seq_len, 2);
  at_least("save_steps", recipe.save_steps, 0);
  at_least("logging_steps", recipe.logging_steps, 1);
  at_least("eval_steps", recipe.eval_steps, 0);
  at_least("warmup_steps", recipe.warmup_steps, 0);
  at_least("memory", recipe.memory_bytes, 0);
  at_least("threads", recipe.threads, 0);
  validate_lora(recipe);
  validate_quantization(recipe);
  if (recipe.bf16 && recipe.fp16) refuse("bf16 and fp16 are both true", "keep one");
  if (!recipe.fp16 && recipe.initial_scale_power != Recipe().initial_scale_power)
    refuse("initial_scale_power has a meaning only for fp16: true", "remove it, or set fp16: true");
  if (!recipe.fp16 && recipe.loss_scale_window != Recipe().loss_scale_window)
    refuse("loss_scale_window has a meaning only for fp16: true", "remove it, or set fp16: true");
  at_least("loss_scale_window", recipe.loss_scale_window, 1);
  const auto beta = [&](std::string_view key, double value) {
    if (!(value >= 0.0 && value < 1.0)) refuse(fmt::format("{} is {}", key, value), "give a number from 0 to less than 1");
  };
  beta("adam_beta1", recipe.adam_beta1);
  beta("adam_beta2", recipe.adam_beta2);
  beta("momentum", recipe.momentum);
  if (recipe.momentum > 0.0 && recipe.optim != Optimizer::sgd)
    refuse("optim_args: momentum has a meaning only for optim: sgd", "remove it, or set optim: sgd");
  if (recipe.optimizer_in_bwd && recipe.accumulation != 1)
    refuse("optimizer_in_bwd updates weights in every backward, so gradients cannot be accumulated",
           "set gradient_accumulation_steps: 1");
  if (recipe.optimizer_in_bwd && recipe.max_grad_norm != 0.0)
    refuse("optimizer_in_bwd cannot clip: the norm of all gradients is known when the weights are already updated",
           "set max_grad_norm: 0");
  if (recipe.optimizer_in_bwd && recipe.fp16)
    refuse("optimizer_in_bwd cannot skip a step whose gradients overflow in fp16", "use bf16: true");
  if (recipe.max_steps != -1) at_least("max_steps", recipe.max_steps, 1);
  if (recipe.max_steps == -1 && !(recipe.num_train_epochs > 0.0))
    refuse("num_train_epochs is 0", "give a positive number, or max_steps");
  validate_schedule(recipe);
  validate_checkpointing(recipe);
  validate_offload(recipe);
  validate_parallel(recipe);
  if (recipe.master_weights.has_value() && *recipe.master_weights &&
      !(recipe.method == Method::full && (recipe.bf16 || recipe.fp16))) {
    refuse("master_weights: true has a meaning only for full fine-tuning with bf16: true or fp16: true", "remove it");
  }
}

}  // namespace snug
