#pragma once
// fit: the recipe that is best for the memory at hand. It searches how the base is kept, the optimizer and the home of its
// states, micro-batches at a fixed effective batch and what of each block is recomputed. Candidates are judged by compiling
// them: their time by the cost model, their memory by the most that is live at once; what is shown is laid out in full. What
// is never compiled is passed over because smaller micro-batches, or more that is recomputed, never need more memory.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advise/alternatives.h"
#include "plan/plan.h"

namespace snug {

struct FitChoice {
  Recipe recipe;
  std::vector<Setting> settings;      // what differs from the recipe that was asked for
  Effect effect = Effect::none;       // the greatest of its settings'
  bool fuses_adam = false;            // in PyTorch, whose AdamW is one kernel where nothing else is said
  std::vector<std::string> given_up;  // the notes of settings whose effect is not none
  int64_t peak_bytes = 0;
  double step_seconds = 0;  // by the cost model
  double score = 0;         // step_seconds times what is given up: a small effect must save a twentieth of the time, a real
                            // one three tenths; lower is better
};

struct FitReport {
  // Of time, memory and effect: what is slower needs at least 5 % less memory or gives up less. Best score first, each laid
  // out.
  std::vector<FitChoice> front;
  std::optional<FitChoice> least;  // nothing fits: the recipe that needs least
  int64_t candidates = 0;          // recipes in the space
  int64_t compiled = 0;            // of which were compiled
  int64_t laid_out = 0;            // of which were laid out in full
};

// `fixed`: keys that stay as `asked` has them; micro-batches may change all the same, their product with the accumulation
// does not. The budget is the recipe's memory_bytes or the target's. Throws Error for a recipe that makes no sense.
FitReport fit(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed, const Target& target);

// The space that `fit` searches, one by one: for tests, and for curious users with time.
std::vector<FitChoice> fit_space(const ModelSpec& model, const Recipe& asked, const std::vector<std::string>& fixed,
                                 const Target& target);

}  // namespace snug
