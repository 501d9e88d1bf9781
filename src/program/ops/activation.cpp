// activation: out = activation(gate) * up, all [M, F] (Shazeer, "GLU Variants", 2020), or activation(gate) without an up.
// Adjoint: d_gate, and d_up over d_out's memory; without an up d_gate over d_out's memory.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace activation_rule {

void check(const Program& program, const Op& op) {
  const int64_t elements = program.tensor(op.find(Slot::gate)).elements();
  const TensorId up = op.find(Slot::up);
  expect(up == kNone || program.tensor(up).elements() == elements, op, "gate and up agree");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId d_out = adjoint.gradient(op.find(Slot::out));
  if (d_out == kNone) return;
  const TensorId gate = op.find(Slot::gate);
  const TensorId up = op.find(Slot::up);
  Op back{OpKind::activation_backward};
  back.attributes = op.attributes;
  back.reads(Slot::gate, gate);
  if (up == kNone) {
    expect(adjoint.gradient(gate) == kNone, op, "gate is used once");
    adjoint.share(gate, d_out);
    back.updates(Slot::d_out, d_out);
  } else {
    const auto d_gate = adjoint.destination(gate);
    expect(!d_gate.accumulate && adjoint.gradient(up) == kNone, op, "gate and up are used once");
    adjoint.share(up, d_out);
    back.reads(Slot::up, up).updates(Slot::d_out, d_out).writes(Slot::d_gate, d_gate.tensor);
  }
  adjoint.emit(std::move(back));
}

}  // namespace activation_rule

const OpRule rules::activation = {.check = activation_rule::check, .work = memory_work, .adjoint = activation_rule::adjoint};
const OpRule rules::activation_backward = {.check = activation_rule::check, .work = memory_work};

}  // namespace snug
