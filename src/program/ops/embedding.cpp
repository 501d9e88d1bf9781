// embedding: out [M, C] = scale * table [V, C] at ids [M].  Adjoint: d_table[ids] += scale * d_out, summed in the order of
// rows.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace embedding_rule {

void check(const Program& program, const Op& op) {
  const Tensor& table = program.tensor(op.find(Slot::weight));
  const Tensor& out = program.tensor(op.find(Slot::out));
  expect(program.tensor(op.find(Slot::ids)).elements() * table.dim(1) == out.elements(), op, "one row for each id");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone || !adjoint.wanted(op.find(Slot::weight))) return;
  const auto d_table = adjoint.destination(op.find(Slot::weight));
  Op back{OpKind::embedding_backward};
  back.attributes = op.attributes;
  back.reads(Slot::d_out, d_out).reads(Slot::ids, op.find(Slot::ids)).updates(Slot::d_table, d_table.tensor);
  adjoint.emit(std::move(back));
}

Work work(const Program& program, const Op& op) {  // touches M rows of the table, not all of it
  const auto out = static_cast<double>(program.tensor(op.find(Slot::out)).bytes());
  return {.flops = 0, .bytes = 2 * out};
}

void check_backward(const Program& program, const Op& op) {
  expect(program.tensor(op.find(Slot::d_table)).dtype == DType::f32, op, "gradients are fp32");
}

Work work_backward(const Program& program, const Op& op) {
  const auto d_out = static_cast<double>(program.tensor(op.find(Slot::d_out)).bytes());
  return {.flops = d_out / 4, .bytes = 3 * d_out};
}

}  // namespace embedding_rule

const OpRule rules::embedding = {
    .check = embedding_rule::check, .work = embedding_rule::work, .adjoint = embedding_rule::adjoint};
const OpRule rules::embedding_backward = {.check = embedding_rule::check_backward, .work = embedding_rule::work_backward};

}  // namespace snug
