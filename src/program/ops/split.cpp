// split: the columns of x [M, N] become a, b and, if there, c, side by side in this order (a fused q/k/v or gate/up
// product). Adjoint: join, the opposite copy of their gradients.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace split_rule {

constexpr Slot kParts[] = {Slot::a, Slot::b, Slot::c};

void check(const Program& program, const Op& op) {
  int64_t elements = 0;
  const Tensor& x = program.tensor(op.find(Slot::x));
  for (Slot slot : kParts) {
    if (op.find(slot) == kNone) continue;
    const Tensor& part = program.tensor(op.find(slot));
    elements += part.elements();
    expect(part.dtype == x.dtype, op, "the parts have the whole's dtype");
  }
  expect(elements == x.elements(), op, "the parts make up the whole");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  if (!adjoint.wanted(op.find(Slot::x))) return;
  Op back{OpKind::join};
  for (Slot slot : kParts) {
    if (op.find(slot) == kNone) continue;
    const TensorId gradient = adjoint.gradient(op.find(slot));
    if (gradient == kNone) return;
    back.reads(slot, gradient);
  }
  const auto d_x = adjoint.destination(op.find(Slot::x));
  expect(!d_x.accumulate, op, "what is split has no other use");
  back.writes(Slot::x, d_x.tensor);
  adjoint.emit(std::move(back));
}

}  // namespace split_rule

const OpRule rules::split = {.check = split_rule::check, .work = memory_work, .adjoint = split_rule::adjoint};
const OpRule rules::join = {.check = split_rule::check, .work = memory_work};

}  // namespace snug
