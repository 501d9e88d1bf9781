// gather_rows: out [P, C] = the token's row of x [M, C] for each of its choices, zeros in padding.  Adjoint: d_x = the sum
// of its choices' gradients, in their order.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace gather_rows_rule {

void check(const Program& program, const Op& op) {
  const Tensor& routed = program.tensor(op.find(Slot::expert_rows));
  const int64_t tokens = routed.dim(0);
  const Tensor& x = program.tensor(op.find(Slot::x));
  expect(x.elements() % tokens == 0, op, "one row of x a token");
  const int64_t rows = program.tensor(op.find(Slot::row_tokens)).elements();
  expect(program.tensor(op.find(Slot::out)).elements() == rows * (x.elements() / tokens), op, "out is P x C");
}

double needed_bytes(const Program& program, const Op& op, Slot rows) {  // of routed rows without their padding
  const Tensor& tensor = program.tensor(op.find(rows));
  const Tensor& routed = program.tensor(op.find(Slot::expert_rows));
  const int64_t row_bytes = tensor.bytes() / tensor.dim(0);
  return static_cast<double>(routed.elements() * row_bytes);
}

Work work(const Program& program, const Op& op) {
  const auto x = static_cast<double>(program.tensor(op.find(Slot::x)).bytes());
  return {.flops = 0, .bytes = x + needed_bytes(program, op, Slot::out)};
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId x = op.find(Slot::x);
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone || !adjoint.wanted(x)) return;
  const auto d_x = adjoint.destination(x);
  Op back{OpKind::gather_rows_backward};
  back.attributes.accumulate = d_x.accumulate;
  back.reads(Slot::d_out, d_out).reads(Slot::expert_rows, op.find(Slot::expert_rows));
  back.with(Slot::d_x, d_x.access(), d_x.tensor);
  adjoint.emit(std::move(back));
}

void check_backward(const Program& program, const Op& op) {
  const Tensor& d_x = program.tensor(op.find(Slot::d_x));
  expect(d_x.dtype == DType::f32, op, "gradients are fp32");
  expect(d_x.elements() % program.tensor(op.find(Slot::expert_rows)).dim(0) == 0, op, "one row of d_x a token");
}

Work work_backward(const Program& program, const Op& op) {
  const auto d_x = static_cast<double>(program.tensor(op.find(Slot::d_x)).bytes());
  const double rows = needed_bytes(program, op, Slot::d_out);
  return {.flops = rows / 4, .bytes = rows + d_x};
}

}  // namespace gather_rows_rule

const OpRule rules::gather_rows = {
    .check = gather_rows_rule::check, .work = gather_rows_rule::work, .adjoint = gather_rows_rule::adjoint};
const OpRule rules::gather_rows_backward = {.check = gather_rows_rule::check_backward,
                                            .work = gather_rows_rule::work_backward};

}  // namespace snug
