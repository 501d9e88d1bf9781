#pragma once
// What the searches of `fit` choose from: one alternative of each group, micro-batches at a fixed effective batch; and what
// earns a line in the front. It judges no memory.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "advise/alternatives.h"
#include "advise/fit.h"

namespace snug {

// A recipe but for micro-batches and recomputed blocks.
struct Structure {
  Recipe recipe;
  std::vector<std::string> given_up;  // notes of what has an effect
  Effect effect = Effect::none;
  std::optional<size_t> kept = {};  // the structure that is this with less, or nothing, that waits on disk
  double penalty = 0;  // that its time must make good: 0.05 for a small effect or the disk, 0.3 for a real effect
};

// Every combination, the recipe as it was asked for first. `fixed`: keys that stay; `takes`: alternatives that count, all if
// it is empty.
std::vector<Structure> structures(const Recipe& asked, const std::vector<std::string>& fixed,
                                  const std::function<bool(const Alternative&)>& takes = {});

// Micro-batches, sequences, ascending, that divide the recipe's effective batch.
std::vector<int64_t> micro_batches(const Recipe& asked);

bool is_fixed(const std::vector<std::string>& fixed, std::string_view key);

inline constexpr size_t kMostShown = 8;  // lines of a front

// Whether a line of the front is no slower, but for a hair, gives up no more and needs no clearly greater memory.
bool is_beaten(double step_seconds, int64_t peak_bytes, Effect effect, const std::vector<FitChoice>& front);

}  // namespace snug
