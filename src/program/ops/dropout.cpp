// dropout: out (+)= x times a mask of 0 and 1/(1 - p) that is drawn from seed, step, micro-batch, layer and element
// (Srivastava et al., 2014); with `complement` what that takes away from x. In place where there is no out. Adjoint: the
// same op with the same mask on the gradient, in place if it is the first contribution to x's.

#include "program/adjoint.h"
#include "program/rules.h"

namespace snug {

namespace dropout_rule {

void check(const Program& program, const Op& op) {
  const Tensor& x = program.tensor(op.find(Slot::x));
  const TensorId out = op.find(Slot::out);
  expect(out == kNone || program.tensor(out).elements() == x.elements(), op, "out agrees");
  expect(op.attributes.probability > 0 && op.attributes.probability < 1, op, "the probability lies between 0 and 1");
  expect(op.attributes.noise_stream < (1U << 16), op, "there are less than 2^16 streams");
  expect(program.layers <= (1 << 16), op, "there are at most 2^16 layers");
}

void adjoint(Adjoint& adjoint, const Op& op) {
  const TensorId x = op.find(Slot::x), out = op.find(Slot::out);
  const TensorId d_out = adjoint.gradient(out);
  if (d_out == kNone || !adjoint.wanted(x)) return;
  Op back{OpKind::dropout};
  back.attributes = op.attributes;
  if (adjoint.gradient(x) == kNone && adjoint.alone(out)) {
    back.updates(Slot::x, d_out);
    adjoint.share(x, d_out);
  } else {
    const auto d_x = adjoint.destination(x);
    back.attributes.accumulate = d_x.accumulate;
    back.reads(Slot::x, d_out).with(Slot::out, d_x.access(), d_x.tensor);
  }
  back.reads(Slot::scalars, op.find(Slot::scalars));
  adjoint.emit(std::move(back));
}

}  // namespace dropout_rule

const OpRule rules::dropout = {.check = dropout_rule::check, .work = memory_work, .adjoint = dropout_rule::adjoint};

}  // namespace snug
