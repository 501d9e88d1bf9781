#pragma once
// Names of operands, shared by all kinds of ops.

#include <cstdint>

namespace snug {

// clang-format off
#define SNUG_SLOTS(S) \
  S(a) S(b) S(absmax) S(nested_absmax) S(absmax_offset) S(c) S(x) S(weight) S(bias) S(out) S(mean) S(rstd) \
  S(ids) S(positions) S(inverse_frequency) S(cosine) S(sine) S(local_cosine) S(local_sine) \
  S(q) S(k) S(v) S(lse) S(sums) S(document_start) S(key_cache) S(value_cache) S(gate) S(up) \
  S(hidden) S(low) S(low_weight) S(target_rows) S(target_tokens) S(predictions) S(scalars) \
  S(d_out) S(d_x) S(d_weight) S(d_bias) S(d_table) S(d_q) S(d_k) S(d_v) S(d_gate) S(d_up) S(d_hidden) S(d_low) S(d_low_weight) \
  S(parameter) S(master) S(gradient) S(first_moment) S(second_moment) S(first_absmax) S(second_absmax) \
  S(row_factor) S(column_factor) S(workspace) S(staging) \
  S(logits) S(route_weights) S(expert_rows) S(row_tokens) S(tile_experts) S(rows) S(d_rows) S(d_route_weights) S(d_logits) \
  S(magnitude) S(norm) S(d_magnitude) \
  S(far) S(window)
// clang-format on

enum class Slot : uint8_t {
#define SNUG_SLOT(slot) slot,
  SNUG_SLOTS(SNUG_SLOT)
#undef SNUG_SLOT
};

const char* name_of(Slot slot);

}  // namespace snug
