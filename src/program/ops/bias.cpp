// add_bias: x [M, N] += bias [N], in place; or, of routed rows, the row of bias [E, N] of each tile's expert.  Adjoint: the
// gradient passes through; d_bias += its column sums, if trained.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace {

void check(const Program& program, const Op& op) {
  const Tensor& bias = program.tensor(op.find(Slot::bias));
  const bool of_experts = op.find(Slot::tile_experts) != kNone;
  const int64_t cols = of_experts ? bias.dim(1) : bias.elements();
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

// Each thread sums its rows apart; an expert's rows stand together, and one thread sums them.
int64_t workspace_backward(const Program& program, const Op& op, int32_t threads) {
  if (op.find(Slot::tile_experts) != kNone) return 0;
  return threads * program.tensor(op.find(Slot::d_bias)).elements() * size_of(DType::f32);
}

}  // namespace

extern const OpRule kAddBiasRule, kBiasBackwardRule;
const OpRule kAddBiasRule = {OpKind::add_bias, check,   cut_by_rows,      no_workspace,
                             memory_work,      adjoint, Recompute::cheap, {.sequence = true, .tensor = true}};
const OpRule kBiasBackwardRule = {
    OpKind::bias_backward, check_backward, cut_by_rows,      workspace_backward,
    memory_work,           nullptr,        Recompute::never, {.sequence = true, .tensor = true}};

}  // namespace snug
