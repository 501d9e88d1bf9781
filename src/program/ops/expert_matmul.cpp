// expert_matmul: c [P, N] = a [P, K] times the transposed weight [E, N, K] of each tile's expert (tile_experts [P / tile]).
// Adjoint: d_a [P, K] (+)= d_c W, and d_W [E, N, K] += d_c^T a over each expert's rows.

#include "program/adjoint.h"
#include "program/ops/quantized.h"
#include "program/rules.h"

namespace snug {

namespace expert_matmul_rule {

void check(const Program& program, const Op& op) {
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const bool sums = op.attributes.transpose_a;
  const Tensor& weight = sums ? c : b;
  const Tensor& result = sums ? b : c;  // the other matrix of routed rows
  expect(weight.shape.size() == 3, op, "weights are E x N x K");
  expect(a.dim(0) % program.tensor(op.find(Slot::tile_experts)).elements() == 0, op, "rows are whole tiles");
  const bool forward = op.attributes.transpose_b;
  expect(a.elements() == a.dim(0) * weight.dim(forward ? 2 : 1), op, "a is P x K, or P x N backward");
  expect(result.elements() == a.dim(0) * weight.dim(forward ? 1 : 2), op, "c is P x N, or P x K backward");
  expect(!sums || (op.attributes.accumulate && !forward), op, "gradients of weights are added to");
  expect(op.attributes.scale == 1.0, op, "there is no scale");
  check_scales(program, op);
  expect(op.attributes.needed_rows > 0 && op.attributes.needed_rows <= a.dim(0), op, "needed rows are known");
}

Work work(const Program& program, const Op& op) {  // rows without padding; every expert's weight once
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const Tensor& c = program.tensor(op.find(Slot::c));
  const Tensor& weight = op.attributes.transpose_a ? c : b;
  const auto needed = static_cast<double>(op.attributes.needed_rows);
  const double share = needed / static_cast<double>(a.dim(0));
  Work work{.flops = 2.0 * needed * static_cast<double>(weight.dim(1)) * static_cast<double>(weight.dim(2))};
  for (const Tensor* tensor : {&a, &b, &c}) {
    const double times = tensor == &c && op.attributes.accumulate ? 2.0 : 1.0;
    work.bytes += times * static_cast<double>(tensor->bytes()) * (tensor == &weight ? 1.0 : share);
  }
  return work;
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId a = op.find(Slot::a);
  const TensorId b = op.find(Slot::b);
  const TensorId tiles = op.find(Slot::tile_experts);
  const TensorId d_c = adjoint.gradient(op.find(Slot::c));
  if (d_c == kNone) return;
  expect(op.attributes.transpose_b, op, "only the linear form has an adjoint");
  if (adjoint.wanted(a)) {
    const auto d_a = adjoint.destination(a);
    Op back{OpKind::expert_matmul};
    back.attributes = {.accumulate = d_a.accumulate, .needed_rows = op.attributes.needed_rows};
    back.reads(Slot::a, d_c).reads(Slot::b, b).reads(Slot::tile_experts, tiles);
    back.with(Slot::c, d_a.access(), d_a.tensor);
    read_scales(op, back);
    adjoint.emit(std::move(back));
  }
  if (adjoint.wanted(b)) {
    const auto d_b = adjoint.destination(b);
    Op back{OpKind::expert_matmul};
    back.attributes = {.transpose_a = true, .accumulate = d_b.accumulate, .needed_rows = op.attributes.needed_rows};
    back.reads(Slot::a, d_c).reads(Slot::b, a).reads(Slot::tile_experts, tiles);
    back.with(Slot::c, d_b.access(), d_b.tensor);
    adjoint.emit(std::move(back));
  }
}

}  // namespace expert_matmul_rule

const OpRule rules::expert_matmul = {
    .check = expert_matmul_rule::check, .work = expert_matmul_rule::work, .adjoint = expert_matmul_rule::adjoint};

}  // namespace snug
