#include "program/passes/units.h"

#include <algorithm>

#include "base/element_count.h"

namespace snug {

namespace {

constexpr int64_t kCommBytes = int64_t{1} << 20;  // received at a time, before it is added

Tensor unit_view(const Program& program, TensorId view, size_t index) {
  const Tensor& of = program.tensor(view);
  const Unit& unit = program.storage(of.storage).units.at(index);
  return {.name = program.storage(of.storage).name,
          .storage = of.storage,
          .dtype = of.dtype,
          .shape = {element_count(of.dtype, unit.bytes)},
          .offset = unit.begin,
          .layer_stride = unit.per_layer ? unit.bytes : 0,
          .first_layer = unit.first_layer};
}

// What is received is added from here.
TensorId staging(Program& program, TensorId part) {
  const Tensor& tensor = program.tensor(part);
  const int64_t most = element_count(tensor.dtype, kCommBytes);
  return program.make("comm.staging", tensor.dtype, {std::min(most, tensor.elements())}, Role::comm);
}

Op collective(const Program& program, OpKind kind, RankGroup group) {
  Op op{kind, Lane::comm};
  op.attributes.ranks = program.mesh.size(group);
  op.attributes.group = group;
  return op;
}

}  // namespace

TensorId own_part(Program& program, TensorId view, size_t unit) {
  Tensor part = unit_view(program, view, unit);
  const int64_t bytes = program.storage(part.storage).units[unit].bytes / program.mesh.parts;
  part.shape = {element_count(part.dtype, bytes)};
  part.rank_stride = bytes;
  if (program.storage(part.storage).ranks == 1) return program.add_tensor(std::move(part));
  part.spread = true;
  const TensorId in_whole = program.add_tensor(part);
  part.spread = false;
  part.offset /= program.mesh.parts;
  part.layer_stride /= program.mesh.parts;
  part.rank_stride = 0;
  part.window_of = in_whole;
  return program.add_tensor(std::move(part));
}

TensorId whole_unit(Program& program, TensorId view, size_t unit) {
  presume(program.storage(program.tensor(view).storage).ranks == 1, "a buffer that is there whole");
  return program.add_tensor(unit_view(program, view, unit));
}

Region unit_loop(const Unit& unit, const char* name, Stage stage) {
  Region region{.name = name, .stage = stage};
  if (!unit.per_layer) return region;
  region.axis = Axis::layer;
  region.first = unit.first_layer;
  region.count = unit.layers;
  return region;
}

Op all_reduce(Program& program, TensorId x, RankGroup group) {
  Op op = collective(program, OpKind::all_reduce, group);
  return op.updates(Slot::x, x).writes(Slot::staging, staging(program, x));
}

Op reduce_scatter(Program& program, TensorId x, TensorId out, bool accumulates) {
  Op op = collective(program, OpKind::reduce_scatter, RankGroup::shard);
  op.attributes.accumulate = accumulates;
  op.updates(Slot::x, x).with(Slot::out, accumulates ? Access::update : Access::write, out);
  return op.writes(Slot::staging, staging(program, out));
}

Op all_gather(Program& program, TensorId x, TensorId out) {
  Op op = collective(program, OpKind::all_gather, RankGroup::shard);
  return op.reads(Slot::x, x).writes(Slot::out, out);
}

}  // namespace snug
