// layer_norm: out [M, C] = (x - mean) * rstd * weight + bias, mean and rstd [M] (Ba et al., 2016).  Adjoint: d_x and, if
// trained, d_weight with d_bias.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace layer_norm_rule {

void check(const Program& program, const Op& op) {
  const Tensor& x = program.tensor(op.find(Slot::x));
  const int64_t cols = program.tensor(op.find(Slot::weight)).elements();
  expect(x.elements() % cols == 0, op, "rows of the weight's length");
  expect(program.tensor(op.find(Slot::bias)).elements() == cols, op, "weight and bias agree");
  expect(program.tensor(op.find(Slot::mean)).elements() * cols == x.elements(), op, "one mean a row");
  expect(program.tensor(op.find(Slot::rstd)).elements() * cols == x.elements(), op, "one rstd a row");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId x = op.find(Slot::x);
  const TensorId weight = op.find(Slot::weight);
  const TensorId bias = op.find(Slot::bias);
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone || (!adjoint.wanted(x) && !adjoint.wanted(weight))) return;
  expect(adjoint.wanted(weight) == adjoint.wanted(bias), op, "weight and bias are trained together");
  const auto d_x = adjoint.destination(x);
  Op back{OpKind::layer_norm_backward};
  back.attributes = op.attributes;
  back.attributes.accumulate = d_x.accumulate;
  back.reads(Slot::d_out, d_out).reads(Slot::x, x).reads(Slot::weight, weight);
  back.reads(Slot::mean, op.find(Slot::mean)).reads(Slot::rstd, op.find(Slot::rstd));
  back.with(Slot::d_x, d_x.access(), d_x.tensor);
  if (adjoint.wanted(weight))
    back.updates(Slot::d_weight, adjoint.destination(weight).tensor).updates(Slot::d_bias, adjoint.destination(bias).tensor);
  adjoint.emit(std::move(back));
}

void check_backward(const Program& program, const Op& op) {
  const Tensor& d_x = program.tensor(op.find(Slot::d_x));
  expect(d_x.dtype == DType::f32 && d_x.elements() == program.tensor(op.find(Slot::x)).elements(), op,
         "d_x has x's shape in fp32");
}

}  // namespace layer_norm_rule

const OpRule rules::layer_norm = {.check = layer_norm_rule::check, .work = memory_work, .adjoint = layer_norm_rule::adjoint};
const OpRule rules::layer_norm_backward = {.check = layer_norm_rule::check_backward, .work = memory_work};

}  // namespace snug
