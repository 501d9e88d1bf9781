// What to change when a plan does not fit: single changes in the order of what they cost the user.

#include <functional>

#include "base/error.h"
#include "plan/plan.h"
#include "program/compile.h"
#include "recipe/keys.h"

namespace snug {

namespace {

struct Candidate {
  std::string key, value, effect;
  Recipe recipe;
};

// Keys may need each other: the optimizer in backward takes no accumulation.
bool is_sound(const Recipe& recipe) {
  try {
    validate(recipe);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The name of the recipe's optimizer with its states on disk; empty if there is none, or they are there.
std::string paged_optimizer(Recipe recipe) {
  const Key& optim = *find_key("optim");
  const std::string now = optim.get(recipe);
  recipe.pages_states = true;
  const std::string paged = optim.get(recipe);
  return paged == now ? "" : paged;
}

std::vector<Candidate> candidates(const Plan& plan) {
  std::vector<Candidate> list;
  const Recipe& now = plan.recipe;
  const auto add = [&](std::string key, std::string value, std::string effect, const std::function<void(Recipe&)>& change) {
    Recipe recipe = now;
    change(recipe);
    if (is_sound(recipe)) list.push_back({std::move(key), std::move(value), std::move(effect), std::move(recipe)});
  };
  const bool all_recomputed = now.gradient_checkpointing && now.checkpoint_layers.empty();
  if (!all_recomputed) {
    const bool some_recomputed = now.gradient_checkpointing;
    add(some_recomputed ? "checkpoint_layers" : "gradient_checkpointing", some_recomputed ? "all" : "true",
        "same result, slower by about a third", [](Recipe& r) {
          r.gradient_checkpointing = true;
          r.checkpoint_layers.clear();
        });
  }
  for (int64_t batch = now.batch / 2; batch >= 1; batch /= 2) {
    const int64_t accumulation = (now.batch * now.accumulation + batch - 1) / batch;
    add("per_device_train_batch_size", std::to_string(batch),
        "with gradient_accumulation_steps " + std::to_string(accumulation) + ": same effective batch, slightly slower",
        [batch, accumulation](Recipe& r) {
          r.batch = batch;
          r.accumulation = accumulation;
        });
  }
  if (const std::string paged = paged_optimizer(now); now.method == Method::full && !paged.empty())
    add("optim", paged, "same result; each step reads and writes the optimizer's states on disk",
        [](Recipe& r) { r.pages_states = true; });
  if (!now.bf16 && !now.fp16)
    add("bf16", "true", "weights and saved activations rounded to bf16", [](Recipe& r) { r.bf16 = true; });
  const int64_t seq_len = sequence_length(plan.model, now);
  for (int64_t shorter = seq_len / 2; shorter >= 64; shorter /= 2)
    add("max_length", std::to_string(shorter), "documents longer than this are cut",
        [shorter](Recipe& r) { r.seq_len = shorter; });
  if (now.method == Method::lora && !now.quantize.any())
    add("load_in_4bit", "true", "the frozen linears rounded to 4 bits; about as fast",
        [](Recipe& r) { r.quantize.in_4bit = true; });
  if (now.method == Method::full)
    add("method", "lora", "trains an adapter instead of all weights", [](Recipe& r) { r.method = Method::lora; });
  return list;
}

}  // namespace

std::optional<Change> smallest_change_that_fits(const Plan& plan, std::optional<Change>& closest) {
  closest.reset();
  for (const Candidate& candidate : candidates(plan)) {
    const Plan changed = make_plan(plan.model, candidate.recipe, plan.target);
    Change change{candidate.key, candidate.value, candidate.effect, changed.peak_bytes};
    if (changed.peak_bytes <= plan.budget_bytes) return change;
    if (!closest || change.peak_bytes < closest->peak_bytes) closest = std::move(change);
  }
  return std::nullopt;
}

}  // namespace snug
