// route: logits [M, E] -> the J largest of each token: their weights [M, J], their rows [M, J], and what every routed row
// and tile of rows holds; where ranks split experts, of this rank's. With sigmoid scores (plans only) a bias [E] helps to
// choose, and has no part in the weights. Adjoint: d_logits from d_route_weights; which experts are chosen has no gradient.

#include <algorithm>
#include <limits>

#include "op/routed_rows.h"
#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace route_rule {

// The weights alone do not say what made them: a softmax over all experts, or sigmoids before their sum was divided out.
bool reads_logits_back(const Op& op) { return !op.attributes.normalize_weights || op.attributes.sigmoid_scores; }

struct Sizes {
  int64_t tokens, experts, choices, rows, tile;
};

Sizes sizes_of(const Program& program, const Op& op, Slot logits) {
  const Tensor& routed = program.tensor(op.find(Slot::expert_rows));
  const Tensor& scores = program.tensor(op.find(logits));
  return {.tokens = scores.dim(0), .experts = scores.dim(1), .choices = routed.dim(1)};
}

void check(const Program& program, const Op& op) {
  const Tensor& logits = program.tensor(op.find(Slot::logits));
  expect(logits.dtype == DType::f32 && logits.shape.size() == 2, op, "logits are M x E in fp32");
  const Sizes sizes = sizes_of(program, op, Slot::logits);
  expect(sizes.choices >= 1 && sizes.choices <= sizes.experts, op, "1 <= J <= E");
  for (Slot slot : {Slot::route_weights, Slot::expert_rows})
    expect(program.tensor(op.find(slot)).elements() == sizes.tokens * sizes.choices, op, "one row and weight a choice");
  const RoutedRows routed = routed_rows(sizes.tokens, sizes.experts, sizes.choices, op.attributes.ranks);
  expect(sizes.experts % op.attributes.ranks == 0, op, "as many experts for each rank");
  expect(routed.rows <= std::numeric_limits<int32_t>::max(), op, "rows are counted in int32");
  expect(program.tensor(op.find(Slot::row_tokens)).elements() == routed.rows, op, "row_tokens is P");
  expect(program.tensor(op.find(Slot::tile_experts)).elements() == routed.rows / routed.tile, op, "tile_experts is P/tile");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId logits = op.find(Slot::logits);
  const TensorId d_weights = adjoint.gradient(op.find(Slot::route_weights));
  if (d_weights == kNone || !adjoint.wanted(logits)) return;
  const auto d_logits = adjoint.destination(logits);
  expect(!d_logits.accumulate, op, "logits are used once");
  Op back{OpKind::route_backward};
  back.attributes = op.attributes;
  back.reads(Slot::d_route_weights, d_weights);
  for (Slot slot : {Slot::route_weights, Slot::expert_rows, Slot::tile_experts}) back.reads(slot, op.find(slot));
  if (reads_logits_back(op)) back.reads(Slot::logits, logits);
  back.writes(Slot::d_logits, d_logits.tensor);
  adjoint.emit(std::move(back));
}

void check_backward(const Program& program, const Op& op) {
  const Sizes sizes = sizes_of(program, op, Slot::d_logits);
  expect(program.tensor(op.find(Slot::d_logits)).dtype == DType::f32, op, "gradients are fp32");
  expect(program.tensor(op.find(Slot::d_route_weights)).elements() == sizes.tokens * sizes.choices, op,
         "one gradient a choice");
  expect((op.find(Slot::logits) != kNone) == reads_logits_back(op), op,
         "logits are read where all of them make the weights");
}

}  // namespace route_rule

// Made again, routing is the same to the bit.
const OpRule rules::route = {.check = route_rule::check, .work = memory_work, .adjoint = route_rule::adjoint};
const OpRule rules::route_backward = {.check = route_rule::check_backward, .work = memory_work};

}  // namespace snug
