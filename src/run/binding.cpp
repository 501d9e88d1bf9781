#include "run/binding.h"

#include "base/element_count.h"
#include "program/rules.h"

namespace snug {

void* Binding::address(TensorId id) const {
  if (id == kNone || program.tensor(id).spread) return nullptr;
  std::byte* const base = bases[static_cast<size_t>(program.home_of(id))];
  return base == nullptr ? nullptr : base + offset(id);
}

int64_t Binding::offset(TensorId id) const {
  const Tensor& tensor = program.tensor(id);
  const int64_t instance =
      tensor.instance + (tensor.instance_by_layer ? layer : 0) + turn % tensor.slots * tensor.slot_instances;
  return layout.offset_of(tensor.storage, instance) + first_byte(id);
}

int64_t Binding::first_byte(TensorId id) const {
  const Tensor& tensor = program.tensor(id);
  const auto in_turn = [](int64_t index, int64_t turns) { return turns > 0 ? index % turns : index; };
  return tensor.offset + in_turn(layer - tensor.first_layer, tensor.layer_turns) * tensor.layer_stride +
         in_turn(chunk - tensor.first_chunk, tensor.chunk_turns) * tensor.chunk_stride +
         program.mesh.index(tensor.rank_group, rank) * tensor.rank_stride;
}

int64_t Binding::first_element(TensorId id) const {
  const Tensor& tensor = program.tensor(id);
  return element_count(tensor.dtype, first_byte(tensor.window_of == kNone ? id : tensor.window_of)) +
         program.mesh.index(tensor.rank_group, rank) * tensor.rank_elements;
}

OpView bound_view(const Op& op, const Binding& binding) {
  OpView view = view_of(binding.program, op);
  view.layer = binding.layer;
  view.chunk = binding.chunk;
  view.place = binding.program.mesh.index(op.attributes.group, binding.rank);
  const auto layer = static_cast<size_t>(binding.layer);
  view.is_local = layer < binding.program.local_layers.size() && binding.program.local_layers[layer];
  size_t next = 0;
  for (OperandView& operand : view.operands()) {
    const TensorId tensor = op.operands[next++].tensor;
    operand.data = binding.address(tensor);
    operand.first_element = binding.first_element(tensor);
  }
  return view;
}

}  // namespace snug
