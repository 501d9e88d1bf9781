#pragma once
// LoRA (Hu et al., 2021) as a pass: freezes the model and adds trained low-rank pairs beside linears, as PEFT does.

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// y = x W^T + s (x A^T) B^T with s = alpha / r, or alpha / sqrt(r) with rsLoRA. A [r, in], B [out, r], fp32. With DoRA each
// column j of y is scaled by magnitude[j] / ||W[j, :] + s B[j, :] A||, magnitude [out] trained, before a bias is added.
// `modules_to_save` are trained in full, in fp32 copies. Throws Error naming a target that the model does not have.
void add_lora(Program& program, const Lora& lora);

// The modules that `target_modules` means in this model: PEFT's default, "all-linear" (every linear but the head) or a list.
std::vector<std::string> lora_targets(const Program& program, const Lora& lora);

// True if `target_modules` is "all-linear". Routed experts are no linears: they stay as they are.
bool asks_for_all_linears(const Lora& lora);

}  // namespace snug
