#pragma once
// The Program run through step by step, every layer in turn and in it every chunk: an independent account of what is alive
// when, against which the folded planner is held. Chunks outside of layers are taken once.

#include <vector>

#include "program/program.h"

namespace snug::testing {

struct UnfoldedLife {
  StorageId storage;
  int64_t instance;
  int64_t birth, death;  // in executed ops
  int64_t bytes;
};

std::vector<UnfoldedLife> unfold(const Program& program);

// The most bytes (not aligned) alive at once.
int64_t peak_of(const std::vector<UnfoldedLife>& lives);

}  // namespace snug::testing
