#pragma once
// Remedies for a true shortage, by what the program was doing; those that change least come first.

#include <vector>

#include "explain/advice.h"

namespace snug {

void add_stage_advice(std::vector<Advice>& all, const StageFound& stage);

}  // namespace snug
