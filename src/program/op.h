#pragma once
// Op: one step of a Program as plain data. What a kind means, costs and needs is its rule (`rules.h`, one file for each kind
// in `ops/`); this file knows only how ops are written down.

#include <cstdint>
#include <string>
#include <vector>

#include "op/attributes.h"
#include "op/kind.h"
#include "op/slot.h"
#include "program/tensor.h"

namespace snug {

enum class Access : uint8_t { read, write, update };

struct Operand {
  Slot slot;
  Access access;
  TensorId tensor;
};

// The lane an op runs on. Lanes other than compute run beside it: `plan/events.h` says how long what they touch is alive.
enum class Lane : uint8_t { compute, copy_in, copy_out, comm, host };
constexpr int kLaneCount = 5;

using OpId = int32_t;

struct Op {
  OpKind kind;
  Lane lane = Lane::compute;
  std::vector<Operand> operands;
  Attributes attributes;
  OpCut cut;
  OpId id = kNone;  // that a handle knows it by; its copies in other regions keep it

  TensorId find(Slot slot) const {  // kNone where absent
    for (const Operand& operand : operands)
      if (operand.slot == slot) return operand.tensor;
    return kNone;
  }
  Op& with(Slot slot, Access access, TensorId tensor) {
    operands.push_back({slot, access, tensor});
    return *this;
  }
  Op& reads(Slot slot, TensorId tensor) { return with(slot, Access::read, tensor); }
  Op& writes(Slot slot, TensorId tensor) { return with(slot, Access::write, tensor); }
  Op& updates(Slot slot, TensorId tensor) { return with(slot, Access::update, tensor); }
};

const char* name_of(Lane lane);

}  // namespace snug
