#include "explain/scaled_round.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "torch/replay.h"

namespace snug {

namespace {

// The same allocation in every round: its stack, and how often that came before.
using PlaceInRound = std::pair<StackId, size_t>;
using SizeAt = std::map<PlaceInRound, int64_t>;

// Calls `visit(event, place)` for each allocation from `begin` to `end`.
template <class Visit>
void for_each_allocation(const Snapshot& snapshot, int device, size_t begin, size_t end, Visit&& visit) {
  std::unordered_map<StackId, size_t> times;
  for (size_t i = begin; i < end; ++i) {
    const Event& event = snapshot.event(device, i);
    if (event.action == Action::alloc) visit(event, PlaceInRound{event.stack, times[event.stack]++});
  }
}

SizeAt sizes_of(const Snapshot& snapshot, int device, size_t begin, size_t end) {
  SizeAt sizes;
  for_each_allocation(snapshot, device, begin, end,
                      [&](const Event& event, PlaceInRound place) { sizes[place] = event.bytes; });
  return sizes;
}

// By how much a batch is larger than another: of tensors whose sizes differ the ratio that most have. 0: none do.
double batch_ratio(const SizeAt& a, const SizeAt& b) {
  struct Ratio {
    int64_t count = 0, bytes = 0;  // of the largest tensor that has it
    double exactly = 0;
  };
  std::map<int64_t, Ratio> ratios;  // by thousandths
  for (const auto& [place, bytes] : a) {
    const auto same = b.find(place);
    if (same == b.end() || same->second == bytes || same->second <= 0 || bytes <= 0) continue;
    constexpr double kMost = 1e6;
    const double exactly = static_cast<double>(bytes) / static_cast<double>(same->second);
    if (exactly >= kMost) continue;
    Ratio& ratio = ratios[std::llround(1000 * exactly)];
    ++ratio.count;
    if (bytes > ratio.bytes) ratio.bytes = bytes, ratio.exactly = exactly;
  }
  const auto by_count = [](const auto& x, const auto& y) { return x.second.count < y.second.count; };
  const auto most = std::max_element(ratios.begin(), ratios.end(), by_count);
  return most == ratios.end() ? 0 : most->second.exactly;
}

std::set<int64_t> sizes_before(const Snapshot& snapshot, int device, size_t begin) {
  Replay replay(snapshot, device);
  replay.advance_to(begin);
  std::set<int64_t> sizes;
  constexpr int64_t kLeastTensor = int64_t{16} << 10;
  for (const auto& [address, block] : replay.live())
    if (block.requested_bytes >= kLeastTensor) sizes.insert(block.requested_bytes);
  return sizes;
}

class ScaledRound {
 public:
  ScaledRound(const Snapshot& snapshot, int device, const RoundEvents& now, const RoundEvents& near,
              const RoundEvents& other)
      : snapshot_(snapshot),
        device_(device),
        near_(near),
        now_sizes_(sizes_of(snapshot, device, now.begin, now.there)),
        near_sizes_(sizes_of(snapshot, device, near.begin, near.end)),
        other_sizes_(sizes_of(snapshot, device, other.begin, other.end)),
        lasting_(sizes_before(snapshot, device, near.begin)),
        now_ratio_(batch_ratio(now_sizes_, near_sizes_)),
        other_ratio_(batch_ratio(other_sizes_, near_sizes_)) {}

  bool tells() const { return now_ratio_ > 0; }

  // Walks through the earlier round from the place on.
  int64_t further() {
    std::unordered_map<uint64_t, int64_t> live;  // by address: as large as it would be now
    std::unordered_map<StackId, size_t> times;
    int64_t more = 0, most = 0;
    for (size_t i = near_.begin; i < near_.end; ++i) {
      const Event& event = snapshot_.event(device_, i);
      const auto address = static_cast<uint64_t>(event.address);
      if (event.action == Action::alloc) {
        const int64_t bytes = bytes_at({event.stack, times[event.stack]++}, event.bytes);
        live[address] = bytes;
        if (i >= near_.there) more = checked_add(more, bytes);
      } else if (event.action == Action::free_completed) {
        const auto block = live.find(address);
        const int64_t bytes = block != live.end() ? block->second : event.bytes;
        if (block != live.end()) live.erase(block);
        if (i >= near_.there) more -= bytes;
      }
      most = std::max(most, more);
    }
    return most;
  }

 private:
  int64_t bytes_at(const PlaceInRound& place, int64_t near_bytes) const {
    if (const auto now = now_sizes_.find(place); now != now_sizes_.end()) return now->second;
    return static_cast<int64_t>(static_cast<double>(near_bytes) * std::pow(now_ratio_, power_at(place, near_bytes)));
  }

  // With which power of the batch's size a tensor grows: not at all, with it, or with its square (scores). What lives from
  // round to round, weights and states, does not; nor do tensors of their sizes, their gradients and copies.
  double power_at(const PlaceInRound& place, int64_t near_bytes) const {
    if (lasting_.contains(near_bytes)) return 0;
    const auto other = other_sizes_.find(place);
    const bool compared = other_ratio_ > 0 && other != other_sizes_.end() && other->second > 0 && near_bytes > 0;
    if (!compared) return 1;
    if (other->second == near_bytes) return 0;
    const double power =
        std::log(static_cast<double>(other->second) / static_cast<double>(near_bytes)) / std::log(other_ratio_);
    constexpr double kNear = 0.1;  // sizes that are rounded up, to a kernel's tile, tell no power
    return std::abs(power - 2) < kNear ? 2 : 1;
  }

  const Snapshot& snapshot_;
  const int device_;
  const RoundEvents near_;
  const SizeAt now_sizes_, near_sizes_, other_sizes_;
  const std::set<int64_t> lasting_;  // sizes of what lives when the earlier round begins
  const double now_ratio_, other_ratio_;
};

}  // namespace

std::optional<int64_t> further_by_scaling(const Snapshot& snapshot, int device, const RoundEvents& now,
                                          const RoundEvents& near, const RoundEvents& other) {
  ScaledRound scaled(snapshot, device, now, near, other);
  if (!scaled.tells()) return std::nullopt;
  return scaled.further();
}

}  // namespace snug
