#pragma once
// From an op's view to the arguments of its kernel. Every op's header says for its struct how it is bound, and what of an op
// the struct has no place for.

#include "kernels/operands.h"
#include "op/view.h"

namespace snug::kernels {

// The arguments that `op` means.
template <class Args>
Args bind(const OpView& op);

// What of this op kernels cannot be told, so that it is refused by name; null: nothing.
template <class Args>
const char* missing(const OpView&) {
  return nullptr;
}

// ---- Operands; null where absent.
template <class T>
T* pointer(const OpView& op, Slot slot) {
  const OperandView* operand = op.find(slot);
  return operand == nullptr ? nullptr : static_cast<T*>(operand->data);
}
inline float* floats(const OpView& op, Slot slot) { return pointer<float>(op, slot); }
inline const int32_t* ints(const OpView& op, Slot slot) { return pointer<int32_t>(op, slot); }
inline Scalars* scalars(const OpView& op) { return pointer<Scalars>(op, Slot::scalars); }

inline In in(const OpView& op, Slot slot) {
  const OperandView* operand = op.find(slot);
  if (operand == nullptr) return {};
  return {operand->data, operand->dtype};
}
inline Out out(const OpView& op, Slot slot) {
  const OperandView* operand = op.find(slot);
  if (operand == nullptr) return {};
  return {operand->data, operand->dtype};
}
// A weight, with its scales if it is quantized.
inline In matrix(const OpView& op, Slot slot) {
  In found = in(op, slot);
  if (!op.has(Slot::absmax)) return found;
  found.scales = {.absmax = pointer<const void>(op, Slot::absmax),
                  .nested_absmax = floats(op, Slot::nested_absmax),
                  .offset = floats(op, Slot::absmax_offset),
                  .block_size = op.attributes.block_size,
                  .values = op.attributes.values};
  return found;
}
inline Workspace workspace(const OpView& op) {
  const OperandView* operand = op.find(Slot::workspace);
  if (operand == nullptr) return {};
  return {operand->data, operand->bytes()};
}

}  // namespace snug::kernels
