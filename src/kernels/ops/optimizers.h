#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// A state of an optimizer, one number for each element. f32; or bf16, rounded stochastically; or u8: codes of a dynamic map
// (base/dynamic_map.h), signed for a first moment and unsigned for a second, times the largest magnitude of each block of
// kStateBlock elements.
struct CodedState {
  void* data = nullptr;  // [n]
  DType dtype = DType::f32;
  float* absmax = nullptr;  // [n / kStateBlock], of u8
};

// AdamW as torch.optim.AdamW (Loshchilov & Hutter 2019): decay first, then the bias-corrected step; gradient times
// clip_factor. With a master copy the update happens there and parameter receives its rounding. With states in u8 it is
// bitsandbytes' 8-bit AdamW on CUDA (csrc/kernels.cu:kOptimizerStatic8bit2StateBlockwise): decay after the step; where the
// gradient is not finite the states become 0 and the parameter stays. Both states have one dtype. What bf16 states are
// rounded by depends on the element, Scalar::step, seed and stream alone.
struct AdamW {
  Out parameter;            // [n]
  float* master = nullptr;  // [n] or null
  const float* gradient = nullptr;
  CodedState first_moment, second_moment;
  int64_t elements = 0;
  double beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  uint64_t seed = 0, stream = 0;
  int64_t first_element = 0;  // where the noise's counting of elements begins, a multiple of 4
  const Scalars* scalars = nullptr;
  Cut cut;
};

// Stochastic gradient descent as torch.optim.SGD: g = gradient * clip_factor + weight_decay * p; with a velocity,
// velocity = momentum * velocity + g and g = velocity; p -= learning_rate * g. Master copies as in AdamW.
struct Sgd {
  Out parameter;            // [n]
  float* master = nullptr;  // [n] or null
  const float* gradient = nullptr;
  float* velocity = nullptr;  // [n], null without momentum
  int64_t elements = 0;
  double momentum = 0, weight_decay = 0;
  const Scalars* scalars = nullptr;
  Cut cut;
};

// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023): p *= 1 - learning_rate * weight_decay, then
// p -= learning_rate * sign(beta1 * m + (1 - beta1) * g) and m = beta2 * m + (1 - beta2) * g; gradient times clip_factor.
// Master copies as in AdamW, states in u8 too (kOptimizerStatic8bit1StateBlockwise).
struct Lion {
  Out parameter;            // [n]
  float* master = nullptr;  // [n] or null
  const float* gradient = nullptr;
  CodedState first_moment;  // f32 or u8
  int64_t elements = 0;
  double beta1 = 0, beta2 = 0, weight_decay = 0;
  const Scalars* scalars = nullptr;
  Cut cut;
};

// Adafactor (Shazeer & Stern 2018) as transformers' with fixed learning rates: of each matrix's squared gradients only the
// running means of rows and columns are kept; the update is their rank-one estimate, scaled down to a root mean square of 1
// over the whole tensor. A vector is a matrix of one row without row_factor.
// workspace: a double for each matrix and each of its rows.
struct Adafactor {
  Out parameter;                    // [E, N, K]
  float* master = nullptr;          // likewise, or null
  const float* gradient = nullptr;  // likewise
  float* row_factor = nullptr;      // [E, N], or null
  float* column_factor = nullptr;   // [E, K]
  int64_t matrices = 1, rows = 1, cols = 0;
  double weight_decay = 0;
  const Scalars* scalars = nullptr;
  Workspace workspace;
  Cut cut;
};

inline CodedState state(const OpView& op, Slot slot, Slot absmax) {
  return {.data = pointer<void>(op, slot), .dtype = op[slot].dtype, .absmax = floats(op, absmax)};
}

template <>
inline AdamW bind<AdamW>(const OpView& op) {
  const Attributes& a = op.attributes;
  return {.parameter = out(op, Slot::parameter),
          .master = floats(op, Slot::master),
          .gradient = floats(op, Slot::gradient),
          .first_moment = state(op, Slot::first_moment, Slot::first_absmax),
          .second_moment = state(op, Slot::second_moment, Slot::second_absmax),
          .elements = op[Slot::parameter].elements,
          .beta1 = a.beta1,
          .beta2 = a.beta2,
          .epsilon = a.epsilon,
          .weight_decay = a.weight_decay,
          .seed = a.noise_seed,
          .stream = a.noise_stream,
          .first_element = op[Slot::parameter].first_element,
          .scalars = scalars(op),
          .cut = op.cut};
}

template <>
inline Sgd bind<Sgd>(const OpView& op) {
  return {.parameter = out(op, Slot::parameter),
          .master = floats(op, Slot::master),
          .gradient = floats(op, Slot::gradient),
          .velocity = floats(op, Slot::first_moment),
          .elements = op[Slot::parameter].elements,
          .momentum = op.attributes.momentum,
          .weight_decay = op.attributes.weight_decay,
          .scalars = scalars(op),
          .cut = op.cut};
}

template <>
inline Lion bind<Lion>(const OpView& op) {
  return {.parameter = out(op, Slot::parameter),
          .master = floats(op, Slot::master),
          .gradient = floats(op, Slot::gradient),
          .first_moment = state(op, Slot::first_moment, Slot::first_absmax),
          .elements = op[Slot::parameter].elements,
          .beta1 = op.attributes.beta1,
          .beta2 = op.attributes.beta2,
          .weight_decay = op.attributes.weight_decay,
          .scalars = scalars(op),
          .cut = op.cut};
}

template <>
inline Adafactor bind<Adafactor>(const OpView& op) {
  const OperandView& parameter = op[Slot::parameter];
  const int64_t cols = op[Slot::parameter].last_dim();
  const int64_t rows = op.has(Slot::row_factor) ? parameter.dim(parameter.axes - size_t{2}) : 1;
  return {.parameter = out(op, Slot::parameter),
          .master = floats(op, Slot::master),
          .gradient = floats(op, Slot::gradient),
          .row_factor = floats(op, Slot::row_factor),
          .column_factor = floats(op, Slot::column_factor),
          .matrices = parameter.elements / (rows * cols),
          .rows = rows,
          .cols = cols,
          .weight_decay = op.attributes.weight_decay,
          .scalars = scalars(op),
          .workspace = workspace(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
