// add: out = a + b (residual sums).  Adjoint: both inputs share the output's gradient; nothing is copied.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace add_rule {

void check(const Program& program, const Op& op) {
  const int64_t elements = program.tensor(op.find(Slot::a)).elements();
  expect(program.tensor(op.find(Slot::b)).elements() == elements, op, "a and b agree");
  expect(program.tensor(op.find(Slot::out)).elements() == elements, op, "out agrees");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone) return;
  for (Slot slot : {Slot::a, Slot::b})
    if (adjoint.wanted(op.find(slot))) adjoint.share(op.find(slot), d_out);
}

}  // namespace add_rule

const OpRule rules::add = {.check = add_rule::check, .work = memory_work, .adjoint = add_rule::adjoint};

}  // namespace snug
