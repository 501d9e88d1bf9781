#include "plan/lane_clock.h"

#include <algorithm>

namespace snug {

LaneClock::Times LaneClock::run(const Op& op, int64_t layer, double seconds) {
  const auto key = [&](const Operand& operand) {
    const Tensor& tensor = program_.tensor(operand.tensor);
    const int64_t instance = tensor.instance + (tensor.instance_by_layer ? layer : 0);
    if (program_.storage(tensor.storage).home != Home::device)  // pages lie side by side there
      return std::tuple(tensor.storage, instance, tensor.offset + layer * (tensor.layer_stride + tensor.chunk_stride));
    int64_t turn = 0;
    if (tensor.layer_turns > 0) turn = (layer - tensor.first_layer) % tensor.layer_turns;
    if (tensor.chunk_turns > 0) turn = (layer - tensor.first_chunk) % tensor.chunk_turns;
    return std::tuple(tensor.storage, instance, turn);
  };
  double& lane = free_[static_cast<size_t>(op.lane)];
  Times times{.free = lane};
  for (const Operand& operand : op.operands) {
    const Done& done = done_[key(operand)];
    lane = std::max(lane, operand.access == Access::read ? done.written : std::max(done.written, done.used));
  }
  times.begin = lane;
  times.end = lane += seconds;
  for (const Operand& operand : op.operands) {
    Done& done = done_[key(operand)];
    double& last = operand.access == Access::read ? done.used : done.written;
    last = std::max(last, lane);
  }
  return times;
}

void LaneClock::run(double seconds) { free_[static_cast<size_t>(Lane::compute)] += seconds; }

double LaneClock::end() const { return *std::max_element(free_.begin(), free_.end()); }

}  // namespace snug
