#pragma once
// fit for PyTorch: the recipe that is best for a card there. The objective is that of `fit`: time by the cost model, times
// what is given up. Candidates are taken best first; the first that fits is the answer. A larger micro-batch never needs
// less, nor does leaving out checkpoints; runs of a few layers pass over what is far too large; what is shown was followed
// as a whole.

#include <functional>

#include "advise/fit.h"
#include "advise/pytorch_engine.h"

namespace snug {

struct PyTorchSearch {
  std::vector<std::string> fixed;  // as of `fit`
  // Whether a trainer's file has words for the recipe; empty: for all.
  std::function<bool(const Recipe&)> can_say;
  size_t lines = 1;  // of the front, at most
};

// `compiled` of the report counts the candidates that runs of a few layers told of, `laid_out` those that were followed as a
// whole. Checkpoints are of all blocks or of none. Throws Error for a recipe that makes no sense.
FitReport fit_in_pytorch(const ModelSpec& model, const Recipe& asked, const PyTorchSearch& search, PyTorchEngine& engine);

// The space of that search, one by one, with scores that are to be multiplied by seconds: for tests.
std::vector<FitChoice> pytorch_space(const ModelSpec& model, const Recipe& asked, const PyTorchSearch& search);

}  // namespace snug
