#pragma once
// Levers: each single change to a recipe with the bytes that it saves and the time that it costs, both as differences of two
// plans, snug's own or PyTorch's, never from a table; and the smallest set of them that makes a plan fit.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advise/alternatives.h"
#include "advise/engine.h"
#include "plan/plan.h"

namespace snug {

struct Lever {
  Alternative change;
  int64_t peak_bytes = 0;   // with this change alone
  int64_t saved_bytes = 0;  // of the plan's peak; never less than 1 in the table
  double slowdown = 1;      // time of a token with it over time without, by the target's cost model
};

// The changes that save something, those without effect on the result first, then by bytes saved. `fixed`: keys that stay.
std::vector<Lever> levers(const Plan& plan, const std::vector<std::string>& fixed = {});
// The same of another engine's need for the plan's recipe.
std::vector<Lever> levers(const Plan& plan, Engine& engine, const std::vector<std::string>& fixed = {});

// Changes that are made together.
struct LeverSet {
  std::vector<Alternative> changes;
  Effect effect = Effect::none;  // the greatest of them
  Recipe recipe;
  int64_t peak_bytes = 0;  // laid out in full
};

// The set that gives up least and makes the plan fit: without effect on the result before small before real ones; of single
// changes the fastest; where one is not enough, what saves most first, without any that is not needed. None if all together
// do not fit; then `closest` is all of them.
std::optional<LeverSet> smallest_set_that_fits(const Plan& plan, std::optional<LeverSet>& closest,
                                               const std::vector<std::string>& fixed = {});
std::optional<LeverSet> smallest_set_that_fits(const Plan& plan, Engine& engine, std::optional<LeverSet>& closest,
                                               const std::vector<std::string>& fixed = {});

}  // namespace snug
