#pragma once
// What to change, where no recipe is known: general remedies for a cause and a stage, those that change least first. Each
// tells what it can give where the message's figures say so.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain/cause.h"
#include "torch/stage.h"

namespace snug {

struct Advice {
  std::string change;                 // what to do, in the words of PyTorch and transformers
  std::string effect;                 // what it does, and what it costs
  std::optional<int64_t> most_bytes;  // what it can give at most, where the figures tell
  std::string todo = {};              // the word by which a script can follow it (explain/remedies.h); empty: none
};

std::vector<Advice> advise(const OomMessage& message, const Diagnosis& diagnosis, const StageFound& stage);

}  // namespace snug
