#pragma once
// Advice as the program at hand can follow it: no settings of a language model for a network of graphs, no arithmetic that
// the card lacks, no checkpointing where nothing is kept for a backward, the names that the device's maker has for things.

#include <vector>

#include "explain/advice.h"
#include "explain/failed_program.h"
#include "explain/filler.h"

namespace snug {

void suit(const FailedProgram& program, const OomMessage& message, Filler filler, const StageFound& stage,
          Diagnosis& diagnosis, std::vector<Advice>& all);

}  // namespace snug
