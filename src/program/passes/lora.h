#pragma once
// LoRA (Hu et al., 2021) as a pass: freezes the model and adds trained low-rank pairs beside linears, as PEFT does.

#include "program/program.h"
#include "recipe/recipe.h"

namespace snug {

// y = x W^T + s (x A^T) B^T with s = alpha / r. A [r, in], B [out, r], fp32. `modules_to_save` are trained in full, in fp32
// copies. Throws Error naming a target that the model does not have.
void add_lora(Program& program, const Lora& lora);

// The modules that `target_modules` means in this model: PEFT's default, "all-linear" (every linear but the head) or a list.
std::vector<std::string> lora_targets(const Program& program, const Lora& lora);

}  // namespace snug
