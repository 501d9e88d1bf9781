// Loading and saving as parts of the Program. Loading streams through a planned staging buffer, saving writes straight from
// the arena, or through such a buffer from the far home, so neither raises the peak.

#include <algorithm>

#include "base/scalars.h"
#include "program/passes/list.h"

namespace snug {

namespace {

constexpr int64_t kStagingBytes = int64_t{4} << 20;

// A staging buffer no larger than the largest tensor that passes through it, is turned in it, or what rows are
// measured in.
TensorId staging(Program& program, const char* name) {
  int64_t largest = 0;
  for (const Weight& weight : program.weights) {
    const bool turned = weight.quantization && weight.parameter.input_features_first;
    const int64_t bytes = weight.parameter.elements() * size_of(DType::f32) * (turned ? 2 : 1);
    largest = std::max(largest, align_up(bytes, kAlignment));
    if (weight.origin == Origin::row_norms) largest = std::max(largest, kDoraPanel * size_of(DType::f32));
  }
  return program.make(name, DType::u8, {std::min(largest, kStagingBytes)}, Role::temporary);
}

// Whether it has no place of its own in this rank's memory.
bool lies_elsewhere(const Program& program, TensorId tensor) {
  return program.home_of(tensor) != Home::device || program.tensor(tensor).spread;
}

// Whether of what is saved something lies elsewhere.
bool has_far_states(const Program& program) {
  const auto is_far = [&](TensorId tensor) { return lies_elsewhere(program, tensor); };
  return std::any_of(program.weights.begin(), program.weights.end(), [&](const Weight& weight) {
    return weight.trainable &&
           (is_far(weight.tensor) || std::any_of(weight.states.begin(), weight.states.end(),
                                                 [&](const auto& state) { return is_far(state.tensor); }));
  });
}

// The most that a piece of a quantized weight in the far home takes, with its scales: it is made in memory.
int64_t far_piece_bytes(const Program& program) {
  int64_t most = 0;
  for (const Weight& weight : program.weights) {
    if (!weight.quantization || !lies_elsewhere(program, weight.tensor)) continue;
    int64_t bytes = 0;
    for (const TensorId part : {weight.tensor, weight.quantization->absmax, weight.quantization->nested_absmax,
                                weight.quantization->absmax_offset})
      if (part != kNone) bytes = checked_add(bytes, align_up(program.tensor(part).bytes(), kAlignment));
    most = std::max(most, bytes);
  }
  return most;
}

// The scales of the largest matrix whose scales are quantized in their turn.
TensorId nested_scales(Program& program) {
  int64_t most = 0;
  for (const Weight& weight : program.weights) {
    if (!weight.quantization || weight.quantization->nested_absmax == kNone) continue;
    const Tensor& absmax = program.tensor(weight.quantization->absmax);
    most = std::max(most, absmax.shape.back().bound);
  }
  return most == 0 ? kNone : program.make("load.absmax", DType::f32, {most}, Role::temporary);
}

void operands(const Program& program, Op& op, Access access) {
  for (const Weight& weight : program.weights) {
    op.with(Slot::parameter, access, weight.tensor);
    if (weight.quantization && access == Access::write) {
      const Quantization& how = *weight.quantization;
      op.with(Slot::absmax, access, how.absmax);
      if (how.nested_absmax != kNone)
        op.with(Slot::nested_absmax, access, how.nested_absmax).with(Slot::absmax_offset, access, how.absmax_offset);
    }
    for (const OptimizerState& state : weight.states) op.with(state.slot, access, state.tensor);
  }
}

}  // namespace

// The first region.
void passes::load(Program& program, const StepRequest& /*request*/) {
  presume(program.count(Section::load) == 0, "no load yet");
  for (const Weight& weight : program.weights)
    presume(program.tensor(weight.tensor).storage != kNone, "a place for " + weight.parameter.name);
  Region load{.name = "load", .section = Section::load, .stage = Stage::load};
  Op read{OpKind::load};
  read.writes(Slot::staging, staging(program, "load.staging"));
  if (const TensorId scales = nested_scales(program); scales != kNone) read.writes(Slot::staging, scales);
  if (const int64_t bytes = far_piece_bytes(program); bytes > 0)
    read.writes(Slot::window, program.make("load.piece", DType::u8, {bytes}, Role::temporary));
  read.writes(Slot::scalars, program.interface.scalars);
  for (TensorId table : {program.interface.inverse_frequency, program.interface.local_inverse_frequency})
    if (table != kNone) read.writes(Slot::inverse_frequency, table);
  if (const TensorId table = program.interface.router_correction; table != kNone) read.writes(Slot::bias, table);
  operands(program, read, Access::write);
  load.add(std::move(read));
  if (program.count(Section::keep) == 1) {
    presume(program.root.items.front().region()->section == Section::keep, "what stays is fetched first of all");
    load.items.push_back(std::move(program.root.items.front()));
    program.root.items.erase(program.root.items.begin());
  }
  program.root.items.insert(program.root.items.begin(), Item{std::move(load)});
}

// The last region.
void passes::save(Program& program, const StepRequest& /*request*/) {
  Region save{.name = "save", .section = Section::save, .stage = Stage::save};
  Op write{OpKind::save};
  if (has_far_states(program)) write.writes(Slot::staging, staging(program, "save.staging"));
  operands(program, write, Access::read);
  save.add(std::move(write));
  program.root.add(std::move(save));
}

}  // namespace snug
