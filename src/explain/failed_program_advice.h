#pragma once
// Advice as the program at hand can follow it: no settings of a language model for a network of graphs, no arithmetic that
// the card lacks, no checkpointing where nothing is kept for a backward, the names that the device's maker has for things.

#include <vector>

#include "explain/advice.h"
#include "explain/failed_program.h"
#include "explain/filler.h"

namespace snug {

// Puts advice in the words of the program that failed, drops what it cannot follow (no 4 bits without transformers, no bf16
// on cards without it), and says in `diagnosis` what else its settings tell. Where nothing is known of it, nothing changes.
void suit(const FailedProgram& program, const OomMessage& message, Filler filler, const StageFound& stage,
          Diagnosis& diagnosis, std::vector<Advice>& all);

}  // namespace snug
