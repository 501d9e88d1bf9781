#pragma once

#include "kernels/binding.h"
#include "op/routed_rows.h"

namespace snug::kernels {

// Chooses the J experts with the largest logits of each token, the lowest index first among equals (NaN counts as infinite),
// weighs them by softmax over all E logits or, if `normalize`, over the J chosen ones, and gives every choice its row.
// workspace: E int32. Indices are within their bounds whatever the logits are. Where ranks split experts each gives rows to
// the choices of its own, `here` from `first_expert` on; of others' a choice keeps -1 - its expert.
struct Route {
  const float* logits = nullptr;    // [M, E]
  float* route_weights = nullptr;   // [M, J]
  int32_t* expert_rows = nullptr;   // [M, J], the row of each choice; below 0: elsewhere
  int32_t* row_tokens = nullptr;    // [P], the token of each row; -1: padding
  int32_t* tile_experts = nullptr;  // [P / tile], which of those here each tile of rows is of; -1: unused
  int64_t rows = 0, experts = 0, choices = 0, routed_rows = 0, tile = 0;
  int64_t first_expert = 0, here = 0;
  bool normalize = false;
  Workspace workspace;
  Cut cut;
};

// d_logits = the gradient through the weights; which experts are chosen has none.
struct RouteBackward {
  const float* d_route_weights = nullptr;  // [M, J]
  const float* route_weights = nullptr;    // [M, J]
  const int32_t* expert_rows = nullptr;    // [M, J]
  const int32_t* tile_experts = nullptr;   // [P / tile]
  const float* logits = nullptr;           // [M, E]; not read if `normalize`
  float* d_logits = nullptr;               // [M, E]
  int64_t rows = 0, experts = 0, choices = 0, tile = 0;
  int64_t first_expert = 0;
  bool normalize = false;
  Cut cut;
};

// In all that follow, choices that have no row here are passed over.

// out[expert_rows[m, j], :] = x[m, :]; rows of padding are zeroed.
struct GatherRows {
  In x;                                  // [M, C]
  const int32_t* expert_rows = nullptr;  // [M, J]
  const int32_t* row_tokens = nullptr;   // [P]
  Out out;                               // [P, C]
  int64_t rows = 0, cols = 0, choices = 0, routed_rows = 0;
  Cut cut;
};

// d_x[m, :] (+)= the sum of d_out[expert_rows[m, j], :] in the order of j.
struct GatherRowsBackward {
  const float* d_out = nullptr;          // [P, C]
  const int32_t* expert_rows = nullptr;  // [M, J]
  float* d_x = nullptr;                  // [M, C]
  int64_t rows = 0, cols = 0, choices = 0;
  bool accumulate = false;
  Cut cut;
};

// out[m, :] = the sum over j of route_weights[m, j] * x[expert_rows[m, j], :].
struct Combine {
  In x;                                  // [P, C]
  const float* route_weights = nullptr;  // [M, J]
  const int32_t* expert_rows = nullptr;  // [M, J]
  Out out;                               // [M, C]
  int64_t rows = 0, cols = 0, choices = 0;
  Cut cut;
};

// d_x[expert_rows[m, j], :] = route_weights[m, j] * d_out[m, :], zero in padding; d_route_weights[m, j] = the product of
// d_out[m, :] and x[expert_rows[m, j], :], 0 where there is no row here. Either may be null.
struct CombineBackward {
  const float* d_out = nullptr;          // [M, C]
  In x;                                  // [P, C]
  const float* route_weights = nullptr;  // [M, J]
  const int32_t* expert_rows = nullptr;  // [M, J]
  const int32_t* row_tokens = nullptr;   // [P]
  float* d_x = nullptr;                  // [P, C]
  float* d_route_weights = nullptr;      // [M, J]
  int64_t rows = 0, cols = 0, choices = 0, routed_rows = 0;
  Cut cut;
};

inline int64_t routed_rows_of(const OpView& op) { return op[Slot::row_tokens].elements; }
inline int64_t choices_of(const OpView& op) { return op[Slot::expert_rows].dim(1); }

template <>
inline Route bind<Route>(const OpView& op) {
  const OperandView& logits = op[Slot::logits];
  return {.logits = floats(op, Slot::logits),
          .route_weights = floats(op, Slot::route_weights),
          .expert_rows = pointer<int32_t>(op, Slot::expert_rows),
          .row_tokens = pointer<int32_t>(op, Slot::row_tokens),
          .tile_experts = pointer<int32_t>(op, Slot::tile_experts),
          .rows = logits.dim(0),
          .experts = logits.dim(1),
          .choices = choices_of(op),
          .routed_rows = routed_rows_of(op),
          .tile = routed_rows_of(op) / op[Slot::tile_experts].elements,
          .first_expert = op.place * logits.dim(1) / op.attributes.ranks,
          .here = logits.dim(1) / op.attributes.ranks,
          .normalize = op.attributes.normalize_weights,
          .workspace = workspace(op),
          .cut = op.cut};
}

template <>
inline RouteBackward bind<RouteBackward>(const OpView& op) {
  const OperandView& d_logits = op[Slot::d_logits];
  const int64_t tile = routed_rows(d_logits.dim(0), d_logits.dim(1), choices_of(op), op.attributes.ranks).tile;
  return {.d_route_weights = floats(op, Slot::d_route_weights),
          .route_weights = floats(op, Slot::route_weights),
          .expert_rows = ints(op, Slot::expert_rows),
          .tile_experts = ints(op, Slot::tile_experts),
          .logits = floats(op, Slot::logits),
          .d_logits = floats(op, Slot::d_logits),
          .rows = d_logits.dim(0),
          .experts = d_logits.dim(1),
          .choices = choices_of(op),
          .tile = tile,
          .first_expert = op.place * d_logits.dim(1) / op.attributes.ranks,
          .normalize = op.attributes.normalize_weights,
          .cut = op.cut};
}

template <>
inline GatherRows bind<GatherRows>(const OpView& op) {
  const int64_t rows = op[Slot::expert_rows].dim(0);
  return {.x = in(op, Slot::x),
          .expert_rows = ints(op, Slot::expert_rows),
          .row_tokens = ints(op, Slot::row_tokens),
          .out = out(op, Slot::out),
          .rows = rows,
          .cols = op[Slot::x].elements / rows,
          .choices = choices_of(op),
          .routed_rows = routed_rows_of(op),
          .cut = op.cut};
}

template <>
inline GatherRowsBackward bind<GatherRowsBackward>(const OpView& op) {
  const int64_t rows = op[Slot::expert_rows].dim(0);
  return {.d_out = floats(op, Slot::d_out),
          .expert_rows = ints(op, Slot::expert_rows),
          .d_x = floats(op, Slot::d_x),
          .rows = rows,
          .cols = op[Slot::d_x].elements / rows,
          .choices = choices_of(op),
          .accumulate = op.attributes.accumulate,
          .cut = op.cut};
}

template <>
inline Combine bind<Combine>(const OpView& op) {
  const int64_t rows = op[Slot::expert_rows].dim(0);
  return {.x = in(op, Slot::rows),
          .route_weights = floats(op, Slot::route_weights),
          .expert_rows = ints(op, Slot::expert_rows),
          .out = out(op, Slot::out),
          .rows = rows,
          .cols = op[Slot::out].elements / rows,
          .choices = choices_of(op),
          .cut = op.cut};
}

template <>
inline CombineBackward bind<CombineBackward>(const OpView& op) {
  const int64_t rows = op[Slot::expert_rows].dim(0);
  return {.d_out = floats(op, Slot::d_out),
          .x = in(op, Slot::rows),
          .route_weights = floats(op, Slot::route_weights),
          .expert_rows = ints(op, Slot::expert_rows),
          .row_tokens = ints(op, Slot::row_tokens),
          .d_x = floats(op, Slot::d_rows),
          .d_route_weights = floats(op, Slot::d_route_weights),
          .rows = rows,
          .cols = op[Slot::d_out].elements / rows,
          .choices = choices_of(op),
          .routed_rows = routed_rows_of(op),
          .cut = op.cut};
}

template <>
inline const char* missing<Route>(const OpView& op) {
  return op.attributes.sigmoid_scores || op.has(Slot::bias) ? "experts that are scored by sigmoids" : nullptr;
}
template <>
inline const char* missing<RouteBackward>(const OpView& op) {
  return op.attributes.sigmoid_scores ? "experts that are scored by sigmoids" : nullptr;
}

}  // namespace snug::kernels
