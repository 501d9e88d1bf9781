#include "program/collective.h"

#include <algorithm>

#include "base/element_count.h"

namespace snug {

namespace {

constexpr int64_t kCommBytes = int64_t{1} << 20;  // received at a time, before it is added

// What is received is added from here.
TensorId staging(Program& program, TensorId part) {
  const Tensor& tensor = program.tensor(part);
  const int64_t most = element_count(tensor.dtype, kCommBytes);
  return program.make("comm.staging", tensor.dtype, {std::min(most, tensor.elements())}, Role::comm);
}

Op collective(const Program& program, OpKind kind, Together together) {
  Op op{kind, together.lane};
  op.attributes.ranks = program.mesh.size(together.group);
  op.attributes.group = together.group;
  return op;
}

}  // namespace

Op all_reduce(Program& program, TensorId x, Together together) {
  Op op = collective(program, OpKind::all_reduce, together);
  return op.updates(Slot::x, x).writes(Slot::staging, staging(program, x));
}

Op reduce_scatter(Program& program, TensorId x, TensorId out, bool accumulates, Together together) {
  Op op = collective(program, OpKind::reduce_scatter, together);
  op.attributes.accumulate = accumulates;
  op.updates(Slot::x, x).with(Slot::out, accumulates ? Access::update : Access::write, out);
  return op.writes(Slot::staging, staging(program, out));
}

Op all_gather(Program& program, TensorId x, TensorId out, Together together) {
  Op op = collective(program, OpKind::all_gather, together);
  return op.reads(Slot::x, x).writes(Slot::out, out);
}

Op pass_on(const Program& program, TensorId x, TensorId out, Together together) {
  Op op = collective(program, OpKind::pass_on, together);
  return op.reads(Slot::x, x).writes(Slot::out, out);
}

Op send(const Program& program, TensorId x, Together together) {
  Op op = collective(program, OpKind::send, together);
  return op.reads(Slot::x, x);
}

Op receive(const Program& program, TensorId x, Together together) {
  Op op = collective(program, OpKind::receive, together);
  return op.writes(Slot::x, x);
}

}  // namespace snug
