#pragma once
// model + recipe -> Program: the forward, then the passes that the recipe asks for, in the one order that composes.

#include "model/model_spec.h"
#include "program/builder.h"
#include "program/passes/saved_choice.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// The length that the recipe means for this model, tokens.
int64_t sequence_length(const ModelSpec& spec, const Recipe& recipe);

// Throws Error where recipe and model do not go together (a target that the model lacks, a layer it does not have).
// `saved`: what becomes of what blocks save, in place of what the recipe says.
Program compile(const ModelSpec& spec, const Recipe& recipe, const SavedChoice* saved = nullptr);

// The Program that generates with the model. `lora`: a stack of adapters as one, r their ranks' sum and alpha = r; modules
// as in training. Every weight is frozen; A and B of the stack start at zero.
Program compile_generation(const ModelSpec& spec, const Precision& precision, const GenerationShape& shape,
                           const Lora* lora);

}  // namespace snug
