// combine: out [M, C] = the sum over a token's choices of weight times routed row.  Adjoint: d_rows [P, C], zeros in padding
// (which is why row_tokens is an operand), and d_route_weights [M, J].

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace combine_rule {

void check(const Program& program, const Op& op) {
  const Tensor& routed = program.tensor(op.find(Slot::expert_rows));
  const Tensor& rows = program.tensor(op.find(Slot::rows));
  const int64_t routed_rows = program.tensor(op.find(Slot::row_tokens)).elements();
  expect(rows.elements() % routed_rows == 0, op, "rows are P x C");
  expect(program.tensor(op.find(Slot::out)).elements() == routed.dim(0) * (rows.elements() / routed_rows), op,
         "out is M x C");
  const Tensor& weights = program.tensor(op.find(Slot::route_weights));
  expect(weights.dtype == DType::f32 && weights.elements() == routed.elements(), op, "one weight a choice, in fp32");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone) return;
  Op back{OpKind::combine_backward};
  back.reads(Slot::d_out, d_out);
  for (Slot slot : {Slot::rows, Slot::route_weights, Slot::expert_rows, Slot::row_tokens}) back.reads(slot, op.find(slot));
  constexpr Slot kPairs[2][2] = {{Slot::rows, Slot::d_rows}, {Slot::route_weights, Slot::d_route_weights}};
  bool any = false;
  for (const auto& [input, gradient] : kPairs) {
    if (!adjoint.wanted(op.find(input))) continue;
    const auto destination = adjoint.destination(op.find(input));
    expect(!destination.accumulate, op, "rows and weights are used once");
    back.writes(gradient, destination.tensor);
    any = true;
  }
  if (any) adjoint.emit(std::move(back));
}

// A row of C for each choice, read or written; of the gradient both.
Work work_of(const Program& program, const Op& op, Slot summed, double passes) {
  const Tensor& rows = program.tensor(op.find(Slot::rows));
  const Tensor& routed = program.tensor(op.find(Slot::expert_rows));
  const int64_t cols = rows.elements() / rows.dim(0);
  const auto elements = static_cast<double>(routed.elements() * cols);
  const double gradient = passes > 1 ? elements * 4 : 0;
  return {.flops = passes * 2 * elements,
          .bytes = elements * static_cast<double>(size_of(rows.dtype)) + gradient +
                   static_cast<double>(program.tensor(op.find(summed)).bytes())};
}

Work work(const Program& program, const Op& op) { return work_of(program, op, Slot::out, 1); }
Work work_backward(const Program& program, const Op& op) { return work_of(program, op, Slot::d_out, 2); }

void check_backward(const Program& program, const Op& op) {
  const TensorId d_rows = op.find(Slot::d_rows);
  expect(d_rows == kNone || program.tensor(d_rows).elements() == program.tensor(op.find(Slot::rows)).elements(), op,
         "d_rows has rows' shape");
}

}  // namespace combine_rule

const OpRule rules::combine = {.check = combine_rule::check, .work = combine_rule::work, .adjoint = combine_rule::adjoint};
const OpRule rules::combine_backward = {.check = combine_rule::check_backward, .work = combine_rule::work_backward};

}  // namespace snug
