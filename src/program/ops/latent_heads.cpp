// latent_heads: keys and values of latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) from what was projected up, x [B, T,
// H, N + D'], and the row that rotates, one for all heads, rows [B, T, 1, R]: k [B, T, H, N + R] is each head's first N
// numbers with the row behind them, v [B, T, H, D'] the rest of each head. Plans only: no backend has it.  Adjoint:
// latent_heads_backward, the opposite copy of d_k and d_v into d_x; d_rows is the sum over heads.

#include <array>

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace latent_heads_rule {

void check_shapes(const Program& program, const Op& op, const std::array<Slot, 4>& slots) {
  const Tensor& x = program.tensor(op.find(slots[0]));
  const Tensor& rows = program.tensor(op.find(slots[1]));
  const Tensor& k = program.tensor(op.find(slots[2]));
  const Tensor& v = program.tensor(op.find(slots[3]));
  for (const Tensor* tensor : {&x, &rows, &k, &v}) expect(tensor->shape.size() == 4, op, "four axes each");
  for (const Tensor* tensor : {&rows, &k, &v})
    expect(tensor->dim(0) == x.dim(0) && tensor->dim(1) == x.dim(1), op, "the same tokens");
  expect(rows.dim(2) == 1 && k.dim(2) == x.dim(2) && v.dim(2) == x.dim(2), op, "one row for all heads");
  expect(x.dim(3) + rows.dim(3) == k.dim(3) + v.dim(3), op, "keys and values take all numbers");
  expect(k.dim(3) > rows.dim(3), op, "a part of the keys is each head's own");
}

void check(const Program& program, const Op& op) { check_shapes(program, op, {Slot::x, Slot::rows, Slot::k, Slot::v}); }

void check_backward(const Program& program, const Op& op) {
  check_shapes(program, op, {Slot::d_x, Slot::d_rows, Slot::d_k, Slot::d_v});
  for (Slot slot : {Slot::d_x, Slot::d_rows, Slot::d_k, Slot::d_v})
    expect(program.tensor(op.find(slot)).dtype == DType::f32, op, "gradients are fp32");
}

// Numbers are copied; nothing is computed.
Work work(const Program& program, const Op& op) { return {.flops = 0, .bytes = memory_work(program, op).bytes}; }

// An addition for each head's part of the shared row.
Work work_backward(const Program& program, const Op& op) {
  const auto heads = static_cast<double>(program.tensor(op.find(Slot::d_k)).dim(2));
  return {.flops = heads * static_cast<double>(program.tensor(op.find(Slot::d_rows)).elements()),
          .bytes = memory_work(program, op).bytes};
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_k = adjoint.gradient(op.find(Slot::k));
  const TensorId d_v = adjoint.gradient(op.find(Slot::v));
  if (d_k == kNone || d_v == kNone || !adjoint.wanted(op.find(Slot::x))) return;
  Op back{OpKind::latent_heads_backward};
  back.reads(Slot::d_k, d_k).reads(Slot::d_v, d_v);
  constexpr Slot kPairs[2][2] = {{Slot::x, Slot::d_x}, {Slot::rows, Slot::d_rows}};
  for (const auto& [input, gradient] : kPairs) {
    const auto destination = adjoint.destination(op.find(input));
    expect(!destination.accumulate, op, "what becomes keys and values has no other use");
    back.writes(gradient, destination.tensor);
  }
  adjoint.emit(std::move(back));
}

}  // namespace latent_heads_rule

const OpRule rules::latent_heads = {
    .check = latent_heads_rule::check, .work = latent_heads_rule::work, .adjoint = latent_heads_rule::adjoint};
const OpRule rules::latent_heads_backward = {.check = latent_heads_rule::check_backward,
                                             .work = latent_heads_rule::work_backward};

}  // namespace snug
