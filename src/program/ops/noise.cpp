// noise: x += scale * u, in place, where u is drawn evenly between -1 and 1 from seed, step, micro-batch and element.
// Adjoint: x's gradient passes through.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace noise_rule {

void check(const Program& program, const Op& op) {
  expect(op.attributes.scale > 0, op, "a magnitude above 0");
  expect(program.tensor(op.find(Slot::x)).elements() > 0, op, "something to add to");
}

void adjoint(Adjoint& /*adjoint*/, const Op& /*op*/) {}

}  // namespace noise_rule

const OpRule rules::noise = {.check = noise_rule::check, .work = memory_work, .adjoint = noise_rule::adjoint};

}  // namespace snug
