// add: out = a + b (residual sums).  Adjoint: both inputs share the output's gradient; nothing is copied.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace {

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

}  // namespace

const OpRule rules::add = {.check = check, .work = memory_work, .adjoint = adjoint};

}  // namespace snug
