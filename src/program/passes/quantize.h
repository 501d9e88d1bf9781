#pragma once
// Quantized base weights (QLoRA, Dettmers et al. 2023; LLM.int8, Dettmers et al. 2022) as a pass: frozen linears become
// codes with scales beside them, and the products that read them are told so.

#include "model/model_spec.h"
#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

constexpr int64_t kQuantizedBlock = 64;  // elements of a 4-bit weight to a scale, as bitsandbytes has it

// Linears and experts that are not trained are kept as `quantize` says; embedding, head, router, norms and biases stay. As
// bitsandbytes does, a linear stored [in, out] is turned first: its codes are of [out, in]. `other_weights`: the dtype of
// those that stay, and of the numbers that products see unless quantize.compute says otherwise.
void quantize_weights(Program& program, const Quantize& quantize, DType other_weights);

// How the base is kept: as the recipe asks, or as a quantized checkpoint is. Throws Error if they contradict one another, or
// quantized weights are to be trained.
Quantize quantization_of(const ModelSpec& spec, const Recipe& recipe);

}  // namespace snug
