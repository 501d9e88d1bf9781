#include "program/passes/optimizer_states.h"

#include "base/scalars.h"

namespace snug {

namespace {

constexpr int64_t kLeastCodedElements = 4096;  // bitsandbytes' min_8bit_size

using Shape = std::vector<Extent>;

// The scales of a weight's blocks, split over stacked experts, whose files are apart.
Shape absmax_shape(const Parameter& parameter, const Shape& whole) {
  int64_t elements = 1;
  for (const Extent& extent : whole) elements *= extent.bound;
  const int64_t blocks = (elements + kStateBlock - 1) / kStateBlock, experts = whole.front().bound;
  return parameter.experts > 0 ? Shape{experts, blocks / experts} : Shape{blocks};
}

std::vector<StateShape> blocks(const Parameter& parameter, const Shape& whole, bool second) {
  const Shape absmax = absmax_shape(parameter, whole);
  std::vector<StateShape> states = {{Slot::first_moment, "state1", DType::u8, whole},
                                    {Slot::first_absmax, "absmax1", DType::f32, absmax}};
  if (!second) return states;
  states.push_back({Slot::second_moment, "state2", DType::u8, whole});
  states.push_back({Slot::second_absmax, "absmax2", DType::f32, absmax});
  return states;
}

std::vector<StateShape> factors(const Shape& whole) {
  if (whole.size() < 2) return {{Slot::column_factor, "exp_avg_sq", DType::f32, whole}};
  Shape rows = whole, columns = whole;
  rows.pop_back();
  columns.erase(columns.end() - 2);
  return {{Slot::row_factor, "exp_avg_sq_row", DType::f32, rows},
          {Slot::column_factor, "exp_avg_sq_col", DType::f32, columns}};
}

std::vector<StateShape> states_without_master(const Weight& weight, const Shape& whole, const Precision& precision,
                                              const Recipe& recipe) {
  const DType moment = precision.optimizer == DType::u8 ? DType::f32 : precision.optimizer;  // of what has no codes
  const StateShape first{Slot::first_moment, "exp_avg", moment, whole};
  const StateShape second{Slot::second_moment, "exp_avg_sq", moment, whole};
  const bool coded = keeps_blocks(weight, recipe);
  switch (recipe.optim) {
    case Optimizer::adamw:
    case Optimizer::adamw_bf16: return {first, second};
    case Optimizer::adamw_8bit:
      if (coded) return blocks(weight.parameter, whole, true);
      return {first, second};
    case Optimizer::lion: return {first};
    case Optimizer::lion_8bit:
      if (coded) return blocks(weight.parameter, whole, false);
      return {first};
    case Optimizer::sgd:
      if (recipe.momentum > 0) return {{Slot::first_moment, "momentum_buffer", moment, whole}};
      return {};
    case Optimizer::adafactor: return factors(whole);
  }
  return {};
}

}  // namespace

bool keeps_blocks(const Weight& weight, const Recipe& recipe) {
  const Parameter& parameter = weight.parameter;
  const bool wanted = recipe.optim == Optimizer::adamw_8bit || recipe.optim == Optimizer::lion_8bit;
  const bool splits = parameter.experts == 0 || parameter.elements() / parameter.experts % kStateBlock == 0;
  return wanted && splits && parameter.elements() >= kLeastCodedElements;
}

std::vector<StateShape> optimizer_states(const Weight& weight, const Tensor& stored, const Precision& precision,
                                         const Recipe& recipe) {
  std::vector<StateShape> states = states_without_master(weight, stored.shape, precision, recipe);
  if (stored.dtype != DType::f32 && precision.master == DType::f32)
    states.push_back({Slot::master, "master", DType::f32, stored.shape});
  return states;
}

}  // namespace snug
