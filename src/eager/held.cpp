#include "eager/held.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "model/parameters.h"

namespace snug::eager {

namespace {

int64_t rounded(int64_t bytes) { return (bytes + 511) / 512 * 512; }
int64_t rounded(int64_t count, DType dtype) { return rounded(bytes_of(dtype, count)); }

// bitsandbytes/functional.py, quantize_4bit, and nn/modules.py, Int8Params
int64_t quantized_bytes(const Parameter& parameter, const Setup& setup) {
  const int64_t count = parameter.elements(), scales = (count + 63) / 64;
  if (setup.quantization == Quantization::eight_bit)
    return rounded(count) + rounded(parameter.output_features(), DType::f32);
  const int64_t beside = setup.double_quant ? rounded(scales) + rounded((scales + 255) / 256, DType::f32) + 2 * 512
                                            : rounded(scales, DType::f32);
  return rounded((count + 1) / 2) + beside + 512;
}

// The optimizer's states of one trained tensor (eager/optimizer.cpp); `wide`: an embedding's, which stay in 32 bits.
int64_t state_bytes(int64_t count, DType dtype, const std::vector<int64_t>& shape, bool wide, const Setup& setup,
                    const StackProfile& stack) {
  constexpr int64_t kLeastPaged = 100'000, kLeastNarrow = 4096;
  const auto of_bitsandbytes = [&](int64_t states, bool narrow, bool paged) {
    if (paged && count >= kLeastPaged) return int64_t{0};
    if (!narrow || wide || count < kLeastNarrow) return states * rounded(count, DType::f32);
    const int64_t block = stack.optimizer_block;
    return states * (rounded(count) + rounded((count + block - 1) / block, DType::f32));
  };
  switch (setup.optimizer) {
    case Optimizer::adamw:
    case Optimizer::adamw_fused: return 2 * rounded(count, dtype);
    case Optimizer::adamw_8bit: return of_bitsandbytes(2, true, false);
    case Optimizer::paged_adamw_8bit: return of_bitsandbytes(2, true, true);
    case Optimizer::paged_adamw_32bit: return of_bitsandbytes(2, false, true);
    case Optimizer::lion_8bit: return of_bitsandbytes(1, true, false);
    case Optimizer::lion_32bit: return of_bitsandbytes(1, false, false);
    case Optimizer::adafactor:
      if (shape.size() < 2) return rounded(count, DType::f32);
      return rounded(count / shape.back(), DType::f32) + rounded(count / shape[shape.size() - 2], DType::f32);
    case Optimizer::sgd: break;
  }
  return 0;
}

bool is_targeted(const Parameter& parameter, const Setup& setup) {
  if (setup.method != Method::lora || parameter.kind != ParameterKind::linear || parameter.shape.size() != 2) return false;
  if (setup.targets == std::vector<std::string>{"all-linear"}) return true;
  return std::find(setup.targets.begin(), setup.targets.end(), parameter.module) != setup.targets.end();
}

}  // namespace

Held held_bytes(const ModelSpec& spec, const Setup& setup, const StackProfile& stack) {
  Held held;
  const bool prepared = setup.quantization != Quantization::none && setup.preparation != Preparation::none;
  for (const Parameter& parameter : parameters_of(spec)) {
    const int64_t times = parameter.instances(spec.layers), count = parameter.elements();
    const bool quantized = setup.quantization != Quantization::none && parameter.kind == ParameterKind::linear;
    const DType dtype =
        prepared && is_half(setup.weights) ? DType::f32 : setup.weights;  // peft widens what is not quantized
    held.weights += times * (quantized ? quantized_bytes(parameter, setup) : rounded(count, dtype));
    if (setup.method == Method::full) {
      held.gradients += times * rounded(count, setup.weights);
      const bool wide = parameter.kind == ParameterKind::embedding && stack.embeddings_keep_wide_states;
      held.optimizer += times * state_bytes(count, setup.weights, parameter.shape, wide, setup, stack);
    } else if (is_targeted(parameter, setup)) {
      for (const int64_t side : {parameter.input_features(), parameter.output_features()}) {
        const int64_t numbers = checked_mul(side, setup.rank), bytes = rounded(numbers, DType::f32);
        held.adapters += times * bytes;
        held.gradients += times * bytes;
        held.optimizer += times * state_bytes(numbers, DType::f32, {side, setup.rank}, false, setup, stack);
      }
    }
  }
  if (setup.method == Method::lora && held.adapters == 0)
    throw Error("no module of this model has the name of a LoRA target: nothing would be trained", "lora_target_modules",
                "all-linear");
  return held;
}

}  // namespace snug::eager
