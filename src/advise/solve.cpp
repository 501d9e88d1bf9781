#include "advise/solve.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace snug {

namespace {

constexpr int64_t kSeqStep = 64;
constexpr int64_t kMost = int64_t{1} << 20;  // sequences, or tokens of a model that does not say

struct Range {
  int64_t step = 1, most = kMost;  // values are step times 1, 2, …
  std::string end;                 // what `most` is
};

Range range_of(const ModelSpec& model, const Recipe& recipe, Quantity quantity) {
  if (quantity == Quantity::seq)
    return {kSeqStep, model.max_position > 0 ? model.max_position / kSeqStep : kMost / kSeqStep, "the model's positions"};
  if (quantity == Quantity::batch) return {1, kMost, "the largest micro-batch that snug takes"};
  if (recipe.method != Method::lora) throw Error("method: full has no rank", "--solve rank", "give --method lora");
  return {1, model.hidden_size, "the hidden size: a larger rank has no use"};
}

Recipe with(Recipe recipe, Quantity quantity, int64_t value) {
  (quantity == Quantity::batch ? recipe.batch : quantity == Quantity::seq ? recipe.seq_len : recipe.lora.r) = value;
  return recipe;
}

// The most of 1, 2, … `most` that fits, 0 if none does; what fits at a number fits at every smaller one. `guess`: where to
// look first.
template <class Fits>
int64_t largest(const Fits& fits, int64_t guess, int64_t most) {
  int64_t low = 0, high = most + 1;  // `low` fits, `high` does not
  int64_t at = std::clamp<int64_t>(guess, 1, most);
  for (int64_t stride = 1; low + 1 < high; stride *= 2) {
    const bool up = fits(at);
    (up ? low : high) = at;
    const int64_t next = up ? at + stride : at - stride;
    if (next <= low || next >= high || (up ? high <= most : low > 0)) break;
    at = next;
  }
  while (low + 1 < high) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::optional<Quantity> quantity_named(std::string_view word) {
  if (word == "batch") return Quantity::batch;
  if (word == "seq") return Quantity::seq;
  if (word == "rank") return Quantity::rank;
  return std::nullopt;
}

const char* key_of(Quantity quantity) {
  constexpr const char* kKeys[] = {"per_device_train_batch_size", "max_length", "lora_r"};
  return kKeys[static_cast<int>(quantity)];
}

std::optional<Solution> largest_that_fits(const ModelSpec& model, const Recipe& recipe, const Target& target,
                                          Quantity quantity) {
  const Range range = range_of(model, recipe, quantity);
  const int64_t budget = recipe.memory_bytes > 0 ? recipe.memory_bytes : target.memory_bytes;
  const auto least_bytes = [&](int64_t count) {
    return estimate(model, with(recipe, quantity, count * range.step), target).peak_bytes;
  };
  int64_t low = 0, high = 1;  // `low` fits by what is live at once
  while (high <= range.most && least_bytes(high) <= budget) {
    low = high;
    high = std::min(high * 2, std::max(range.most, high + 1));
  }
  high = std::min(high, range.most + 1);
  while (low + 1 < high) {
    const int64_t middle = low + (high - low) / 2;
    (least_bytes(middle) <= budget ? low : high) = middle;
  }
  for (; low >= 1; --low) {  // holes of the layout may cost the last few
    Plan plan = make_plan(model, with(recipe, quantity, low * range.step), target);
    if (plan.fits())
      return Solution{low * range.step, std::move(plan), low == range.most ? range.end : std::string("the budget")};
  }
  return std::nullopt;
}

std::optional<EngineSolution> largest_that_fits(const ModelSpec& model, const Recipe& recipe, Engine& engine,
                                                Quantity quantity) {
  const Range range = range_of(model, recipe, quantity);
  const auto at = [&](int64_t count) { return with(recipe, quantity, count * range.step); };
  const int64_t guess =
      largest([&](int64_t count) { return engine.about(at(count)).bytes <= engine.budget_bytes(); }, 1, range.most);
  const int64_t count =
      largest([&](int64_t value) { return engine.exactly(at(value)).bytes <= engine.budget_bytes(); }, guess, range.most);
  if (count == 0) return std::nullopt;
  return EngineSolution{count * range.step, engine.exactly(at(count)).bytes, at(count),
                        count == range.most ? range.end : std::string("the budget")};
}

}  // namespace snug
