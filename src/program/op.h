#pragma once
// Op: one step of a Program as plain data. What a kind means, costs and needs is its rule (`rules.h`, one file for each kind
// in `ops/`); this file knows only how ops are written down.

#include <cstdint>
#include <string>
#include <vector>

#include "base/activation.h"
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "program/tensor.h"

namespace snug {

enum class OpKind : uint8_t {
  load,   // host: checkpoint -> weights through the staging buffer
  save,   // host: weights and state -> files
  batch,  // host: the next micro-batch -> batch tensors
  embedding,
  embedding_backward,
  rms_norm,
  rms_norm_backward,
  matmul,
  rope_table,
  rope,
  attention,
  attention_backward,
  cached_attention,
  latent_heads,
  latent_heads_backward,
  activation,
  activation_backward,
  layer_norm,
  layer_norm_backward,
  add_bias,
  bias_backward,
  split,
  join,
  add,
  head_loss,
  zero,
  square_sum,
  clip_factor,
  update_scale,
  adamw,
  sgd,
  lion,
  adafactor,
  // Mixture of experts
  route,
  route_backward,
  gather_rows,
  gather_rows_backward,
  expert_matmul,
  combine,
  combine_backward,
  // Adapters
  dropout,
  dora_norm,
  scale_columns,
  scale_columns_backward,
  // Between a home and a window in the arena
  page_in,
  page_out,
};
constexpr int kOpKindCount = 46;

// Names of operands, shared by all kinds.
// clang-format off
enum class Slot : uint8_t {
  a, b, absmax, nested_absmax, absmax_offset, c, x, weight, bias, out, mean, rstd, ids, positions, inverse_frequency, cosine, sine, local_cosine, local_sine,
  q, k, v, lse, document_start, key_cache, value_cache, gate, up,
  hidden, low, low_weight, target_rows, target_tokens, predictions, scalars,
  d_out, d_x, d_weight, d_bias, d_table, d_q, d_k, d_v, d_gate, d_up, d_hidden, d_low, d_low_weight,
  parameter, master, gradient, first_moment, second_moment, first_absmax, second_absmax, row_factor, column_factor,
  workspace, staging,
  logits, route_weights, expert_rows, row_tokens, tile_experts, rows, d_rows, d_route_weights, d_logits,
  magnitude, norm, d_magnitude,
  far, window,
};
// clang-format on

enum class Access : uint8_t { read, write, update };

struct Operand {
  Slot slot;
  Access access;
  TensorId tensor;
};

// The lane an op runs on. Lanes other than compute run beside it; what they touch stays alive to the end of the region.
enum class Lane : uint8_t { compute, copy_in, copy_out, comm, host };

// Launch arguments that never change while training. Each kind uses the few it names.
struct Attributes {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool inverse = false;
  double scale = 1.0;
  double weight_offset = 0.0;  // norms: added to the weight
  double softcap = 0.0;        // attention, head_loss; 0: none
  int64_t first_column = 0;    // rope: the first number of a head that rotates
  int64_t window = 0;          // attention in the Program's local layers, tokens; 0: none
  Activation activation = Activation::silu;
  int64_t untrained_row = -1;  // embedding: this row's gradient is left out; -1: none's
  double epsilon = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double weight_decay = 0.0;
  double momentum = 0.0;
  uint64_t noise_seed = 0, noise_stream = 0;  // of what is rounded or left out at random
  double max_norm = 0.0;
  int64_t scale_window = 0;        // update_scale: good steps before the scale grows
  bool normalize_weights = false;  // of a token's chosen experts, so that they sum to 1
  bool sigmoid_scores = false;     // route: of experts, in place of a softmax
  double probability = 0.0;        // dropout: of an element to be left out
  bool complement = false;         // dropout: what it takes away instead of what it leaves
  int64_t needed_rows = 0;         // of routed rows: tokens times choices; the others are padding
  int64_t block_size = 0;          // of a quantized b: elements to a scale
  DType values = DType::f32;       // that its numbers are rounded to
};

// How the op is split; the same cut gives the same bits. Zero: all at once.
struct OpCut {
  int32_t threads = 1;
  int64_t rows = 0, cols = 0, depth = 0;
  Arithmetic arithmetic = Arithmetic::fp32;  // of products
  bool apart = false;                        // small experts get a thread each
};

struct Op {
  OpKind kind;
  Lane lane = Lane::compute;
  std::vector<Operand> operands;
  Attributes attributes;
  OpCut cut;

  TensorId find(Slot slot) const {  // kNone where absent
    for (const Operand& operand : operands)
      if (operand.slot == slot) return operand.tensor;
    return kNone;
  }
  Op& with(Slot slot, Access access, TensorId tensor) {
    operands.push_back({slot, access, tensor});
    return *this;
  }
  Op& reads(Slot slot, TensorId tensor) { return with(slot, Access::read, tensor); }
  Op& writes(Slot slot, TensorId tensor) { return with(slot, Access::write, tensor); }
  Op& updates(Slot slot, TensorId tensor) { return with(slot, Access::update, tensor); }
};

const char* name_of(OpKind kind);
const char* name_of(Slot slot);
const char* name_of(Lane lane);

}  // namespace snug
