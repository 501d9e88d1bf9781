// add_bias: x [M, N] += bias [N], in place.  Adjoint: the gradient passes through; d_bias += its column sums, if trained.
// With tile_experts: x [P, N] += the row of bias [E, N] of each tile's expert (plans only).

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace bias_rule {

void check(const Program& program, const Op& op) {
  if (op.find(Slot::tile_experts) != kNone)
    return expect(program.tensor(op.find(Slot::x)).dim(1) == program.tensor(op.find(Slot::bias)).dim(1), op, "N agrees");
  const int64_t cols = program.tensor(op.find(Slot::bias)).elements();
  expect(program.tensor(op.find(Slot::x)).elements() % cols == 0, op, "rows of the bias's length");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_x = adjoint.gradient(op.find(Slot::x));
  const TensorId bias = op.find(Slot::bias);
  if (d_x == kNone || !adjoint.wanted(bias)) return;
  Op back{OpKind::bias_backward};
  back.reads(Slot::d_out, d_x).updates(Slot::d_bias, adjoint.destination(bias).tensor);
  if (const TensorId tiles = op.find(Slot::tile_experts); tiles != kNone) back.reads(Slot::tile_experts, tiles);
  adjoint.emit(std::move(back));
}

void check_backward(const Program& program, const Op& op) {
  expect(program.tensor(op.find(Slot::d_bias)).dtype == DType::f32, op, "gradients are fp32");
}

}  // namespace bias_rule

const OpRule rules::add_bias = {.check = bias_rule::check, .work = memory_work, .adjoint = bias_rule::adjoint};
const OpRule rules::bias_backward = {.check = bias_rule::check_backward, .work = memory_work};

}  // namespace snug
