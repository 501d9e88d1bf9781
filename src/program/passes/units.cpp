#include "program/passes/units.h"

#include "base/element_count.h"

namespace snug {

namespace {

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

}  // namespace

TensorId own_part(Program& program, TensorId view, size_t unit) {
  Tensor part = unit_view(program, view, unit);
  const RankGroup group = program.storage(part.storage).cut_by;
  const int64_t parts = program.mesh.size(group);
  const int64_t bytes = program.storage(part.storage).units[unit].bytes / parts;
  part.rank_group = group;
  part.shape = {element_count(part.dtype, bytes)};
  part.rank_stride = bytes;
  if (program.storage(part.storage).ranks == 1) return program.add_tensor(std::move(part));
  part.spread = true;
  const TensorId in_whole = program.add_tensor(part);
  part.spread = false;
  part.offset /= parts;
  part.layer_stride /= parts;
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

}  // namespace snug
