// DoRA (Liu et al., "Weight-Decomposed Low-Rank Adaptation", 2024):
// dora_norm: norm[o] = ||W[o, :] + s B[o, :] A||, a constant for gradients (section 4.3 of the paper).
// scale_columns: out = x * magnitude / norm, x [M, N]. Adjoint: d_x = d_out * magnitude / norm, in place where nothing else
// reads d_out; d_magnitude += column sums of d_out * x / norm.

#include "program/adjoint.h"
#include "program/ops/quantized.h"
#include "program/rules.h"

namespace snug {

namespace dora_rule {

void check_norm(const Program& program, const Op& op) {
  const Tensor& weight = program.tensor(op.find(Slot::weight));
  const Tensor& a = program.tensor(op.find(Slot::a));
  const Tensor& b = program.tensor(op.find(Slot::b));
  const int64_t outputs = program.tensor(op.find(Slot::norm)).elements();
  expect(op.attributes.transpose_b ? weight.dim(0) == outputs : weight.dim(1) == outputs, op, "a norm for each row");
  expect(a.dim(1) * outputs == weight.elements() && b.dim(0) == outputs && a.dim(0) == b.dim(1), op, "A and B fit");
  check_scales(program, op, Slot::weight);
}

Work work_norm(const Program& program, const Op& op) {
  const auto rank = static_cast<double>(program.tensor(op.find(Slot::a)).dim(0));
  return {.flops = 2.0 * (rank + 1.0) * static_cast<double>(program.tensor(op.find(Slot::weight)).elements()),
          .bytes = memory_work(program, op).bytes};
}

void check_scale(const Program& program, const Op& op) {
  const int64_t cols = program.tensor(op.find(Slot::magnitude)).elements();
  const int64_t elements = program.tensor(op.find(Slot::x)).elements();
  expect(program.tensor(op.find(Slot::norm)).elements() == cols && elements % cols == 0, op, "rows of the norm's length");
  const TensorId out = op.find(Slot::out);
  expect(out == kNone || program.tensor(out).elements() == elements, op, "out agrees");
}

void adjoint_scale(Adjoint& adjoint, const Op& op) {
  const TensorId x = op.find(Slot::x), out = op.find(Slot::out), magnitude = op.find(Slot::magnitude);
  const TensorId d_out = adjoint.gradient(out);
  if (d_out == kNone) return;
  Op back{OpKind::scale_columns_backward};
  back.reads(Slot::x, x).reads(Slot::magnitude, magnitude).reads(Slot::norm, op.find(Slot::norm));
  if (adjoint.alone(out) && adjoint.gradient(x) == kNone) {
    back.updates(Slot::d_out, d_out);
    adjoint.share(x, d_out);
  } else {
    const auto d_x = adjoint.destination(x);
    expect(!d_x.accumulate, op, "x is used once");
    back.reads(Slot::d_out, d_out).writes(Slot::d_x, d_x.tensor);
  }
  back.updates(Slot::d_magnitude, adjoint.destination(magnitude).tensor);
  adjoint.emit(std::move(back));
}

}  // namespace dora_rule

const OpRule rules::dora_norm = {.check = dora_rule::check_norm, .work = dora_rule::work_norm};
const OpRule rules::scale_columns = {
    .check = dora_rule::check_scale, .work = memory_work, .adjoint = dora_rule::adjoint_scale};
const OpRule rules::scale_columns_backward = {.check = dora_rule::check_scale, .work = memory_work};

}  // namespace snug
