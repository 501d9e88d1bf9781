#include "program/passes/transfer.h"

#include <algorithm>

#include "base/scalars.h"

namespace snug {

namespace {

// A staging buffer no larger than the largest tensor that passes through it.
TensorId staging(Program& program, const char* name) {
  int64_t largest = 0;
  for (const Weight& weight : program.weights)
    largest = std::max(largest, align_up(weight.parameter.elements() * size_of(DType::f32), kAlignment));
  return program.make(name, DType::u8, {std::min(largest, kStagingBytes)}, Role::temporary);
}

bool has_far_states(const Program& program) {
  return std::any_of(program.storages.begin(), program.storages.end(),
                     [](const Storage& storage) { return storage.home != Home::device; });
}

void operands(const Program& program, Op& op, Access access) {
  for (const Weight& weight : program.weights) {
    op.with(Slot::parameter, access, weight.tensor);
    for (const OptimizerState& state : weight.states) op.with(state.slot, access, state.tensor);
  }
}

}  // namespace

void add_load(Program& program) {
  Region load{.name = "load", .stage = Stage::load};
  Op read{OpKind::load};
  read.writes(Slot::staging, staging(program, "load.staging"));
  read.writes(Slot::scalars, program.interface.scalars);
  for (TensorId table : {program.interface.inverse_frequency, program.interface.local_inverse_frequency})
    if (table != kNone) read.writes(Slot::inverse_frequency, table);
  operands(program, read, Access::write);
  load.add(std::move(read));
  program.root.items.insert(program.root.items.begin(), Item{std::move(load)});
}

void add_transfers(Program& program) {
  add_load(program);
  Region save{.name = "save", .stage = Stage::save};
  Op write{OpKind::save};
  if (has_far_states(program)) write.writes(Slot::staging, staging(program, "save.staging"));
  operands(program, write, Access::read);
  save.add(std::move(write));
  program.root.add(std::move(save));
}

}  // namespace snug
