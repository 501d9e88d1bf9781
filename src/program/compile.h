#pragma once
// model + recipe -> Program: the forward, then the passes that the recipe asks for, in the one order that composes.

#include "model/model_spec.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// The length that the recipe means for this model, tokens.
int64_t sequence_length(const ModelSpec& spec, const Recipe& recipe);

// Throws Error where recipe and model do not go together (a target that the model lacks, a layer it does not have).
Program compile(const ModelSpec& spec, const Recipe& recipe);

}  // namespace snug
