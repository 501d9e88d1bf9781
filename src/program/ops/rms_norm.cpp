// rms_norm: out [M, C] = x * rstd * weight, rstd [M] (Zhang & Sennrich 2019).  Adjoint: d_x and, if trained, d_weight.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace rms_norm_rule {

void check(const Program& program, const Op& op) {
  const Tensor& x = program.tensor(op.find(Slot::x));
  const int64_t cols = program.tensor(op.find(Slot::weight)).elements();
  expect(x.elements() % cols == 0, op, "rows of the weight's length");
  expect(program.tensor(op.find(Slot::out)).elements() == x.elements(), op, "out has x's shape");
  expect(program.tensor(op.find(Slot::rstd)).elements() * cols == x.elements(), op, "one rstd a row");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId x = op.find(Slot::x);
  const TensorId weight = op.find(Slot::weight);
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone || (!adjoint.wanted(x) && !adjoint.wanted(weight))) return;
  const auto d_x = adjoint.destination(x);
  Op back{OpKind::rms_norm_backward};
  back.attributes = op.attributes;
  back.attributes.accumulate = d_x.accumulate;
  back.reads(Slot::d_out, d_out).reads(Slot::x, x).reads(Slot::weight, weight).reads(Slot::rstd, op.find(Slot::rstd));
  back.with(Slot::d_x, d_x.access(), d_x.tensor);
  if (adjoint.wanted(weight)) back.updates(Slot::d_weight, adjoint.destination(weight).tensor);
  adjoint.emit(std::move(back));
}

void check_backward(const Program& program, const Op& op) {
  const Tensor& d_x = program.tensor(op.find(Slot::d_x));
  expect(d_x.dtype == DType::f32 && d_x.elements() == program.tensor(op.find(Slot::x)).elements(), op,
         "d_x has x's shape in fp32");
}

}  // namespace rms_norm_rule

const OpRule rules::rms_norm = {.check = rms_norm_rule::check, .work = memory_work, .adjoint = rms_norm_rule::adjoint};
const OpRule rules::rms_norm_backward = {.check = rms_norm_rule::check_backward, .work = memory_work};

}  // namespace snug
