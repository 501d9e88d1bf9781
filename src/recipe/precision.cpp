#include "recipe/recipe.h"

namespace snug {

// Adapters are always fp32, with fp32 moments, whatever the base: they are small, and bf16 would lose their updates. So for
// LoRA `weights` is the frozen base alone, and `master` follows it (there is no copy). Full fine-tuning in bf16 or fp16
// keeps an fp32 copy unless master_weights is false.
Precision precision_of(const Recipe& recipe) {
  Precision precision;
  if (recipe.optim == Optimizer::adamw_bf16) precision.optimizer = DType::bf16;
  if (recipe.optim == Optimizer::adamw_8bit || recipe.optim == Optimizer::lion_8bit) precision.optimizer = DType::u8;
  if (recipe.quantize.upcast || (!recipe.bf16 && !recipe.fp16)) return precision;
  const DType half = recipe.fp16 ? DType::f16 : DType::bf16;
  precision.weights = half;
  precision.activations = half;
  const bool keeps_copy = recipe.method == Method::full && recipe.master_weights.value_or(true);
  precision.master = keeps_copy ? DType::f32 : half;
  return precision;
}

}  // namespace snug
