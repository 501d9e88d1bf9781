// rope_table: cosine, sine [M, half] of positions x inverse frequencies, once a micro-batch.
// rope: rotates 2 half numbers of each head of x [M, heads, D] in place, from the attribute's column on, halves split (Su et
// al., RoFormer, 2021; Hugging Face's "rotate_half"; kernels rotate from column 0 only). Adjoint: the same rotation
// backwards, in place on the gradient.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace rope_rule {

void check_table(const Program& program, const Op& op) {
  const int64_t rows = program.tensor(op.find(Slot::positions)).elements();
  const int64_t half = program.tensor(op.find(Slot::inverse_frequency)).elements();
  expect(program.tensor(op.find(Slot::cosine)).elements() == rows * half, op, "cosine is M x D/2");
  expect(program.tensor(op.find(Slot::sine)).elements() == rows * half, op, "sine is M x D/2");
}

void check(const Program& program, const Op& op) {
  const Tensor& x = program.tensor(op.find(Slot::x));
  const Tensor& cosine = program.tensor(op.find(Slot::cosine));
  expect(x.dim(x.shape.size() - 1) >= op.attributes.first_column + 2 * cosine.dim(1), op,
         "a head has twice the table's width from the first column on");
  expect((op.find(Slot::local_cosine) == kNone) == (op.find(Slot::local_sine) == kNone), op, "the local table comes whole");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_x = adjoint.gradient(op.find(Slot::x));
  if (d_x == kNone) return;
  Op back{OpKind::rope};
  back.attributes.first_column = op.attributes.first_column;
  back.attributes.inverse = !op.attributes.inverse;
  back.updates(Slot::x, d_x);
  for (Slot slot : {Slot::cosine, Slot::sine, Slot::local_cosine, Slot::local_sine})
    if (op.find(slot) != kNone) back.reads(slot, op.find(slot));
  adjoint.emit(std::move(back));
}

}  // namespace rope_rule

const OpRule rules::rope_table = {.check = rope_rule::check_table, .work = memory_work};
const OpRule rules::rope = {.check = rope_rule::check, .work = memory_work, .adjoint = rope_rule::adjoint};

}  // namespace snug
