#pragma once
// An op as targets cut it and kernels run it: its kind, attributes and cut, and its operands with dtypes and sizes;
// addresses where it is about to run. It knows no Program.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "op/attributes.h"
#include "op/kind.h"
#include "op/slot.h"

namespace snug {

struct OperandView {
  Slot slot;
  DType dtype = DType::f32;
  uint8_t axes = 0;
  std::array<int64_t, 4> shape{};
  int64_t elements = 0;
  void* data = nullptr;       // null: not bound, or in another home
  int64_t first_element = 0;  // before the view, in its storage

  int64_t dim(size_t axis) const { return shape[axis]; }
  int64_t last_dim() const { return shape[axes - size_t{1}]; }
  int64_t bytes() const { return bytes_of(dtype, elements); }
};

class OpView {
 public:
  OpView(OpKind of, const Attributes& its_attributes, const OpCut& its_cut)
      : kind(of), attributes(its_attributes), cut(its_cut) {}

  // Throws std::logic_error where there are too many.
  OperandView& add(const OperandView& operand);
  bool has(Slot slot) const { return find(slot) != nullptr; }
  const OperandView* find(Slot slot) const {  // null where absent
    for (const OperandView& operand : operands())
      if (operand.slot == slot) return &operand;
    return nullptr;
  }
  // Throws std::logic_error where absent.
  const OperandView& operator[](Slot slot) const {
    const OperandView* found = find(slot);
    if (found == nullptr) refuse_absent(slot);
    return *found;
  }
  std::span<const OperandView> operands() const { return {operands_.data(), count_}; }
  std::span<OperandView> operands() { return {operands_.data(), count_}; }

  OpKind kind;
  const Attributes& attributes;
  const OpCut& cut;
  int64_t layer = 0;      // whose turn it is …
  int64_t chunk = 0;      // … likewise in a loop over chunks
  int64_t place = 0;      // of the rank, in the op's group
  bool is_local = false;  // a layer whose attention is windowed, and that rotates by the local table

 private:
  [[noreturn]] void refuse_absent(Slot slot) const;

  static constexpr size_t kMostOperands = 16;
  std::array<OperandView, kMostOperands> operands_{};
  size_t count_ = 0;
};

}  // namespace snug
