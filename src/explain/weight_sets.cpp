#include "explain/weight_sets.h"

#include <algorithm>
#include <numeric>

namespace snug {

namespace {

constexpr int64_t kLeastMatrix = int64_t{128} << 10;  // norms and biases are smaller
constexpr int64_t kFewestLayers = 3;

}  // namespace

void WeightSets::add(const StackReading& reading, bool older, bool copied, const LiveBlock& block) {
  const Frame line = older ? Frame{} : reading.own.value_or(reading.caller.value_or(Frame{}));
  Set& set = sets_[{line.file, line.line}];
  set.bytes += block.bytes;
  set.copied = set.copied || copied;
  ++set.sizes[block.requested_bytes];
}

void WeightSets::add_written(const LiveBlock& block) { ++written_[block.requested_bytes]; }

int64_t WeightSets::bytes() const {
  int64_t sum = 0;
  for (const auto& [line, set] : sets_) sum += set.bytes;
  return sum;
}

const WeightSets::Set& WeightSets::largest() const {
  const auto by_bytes = [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; };
  return std::max_element(sets_.begin(), sets_.end(), by_bytes)->second;
}

int64_t WeightSets::second_bytes(bool small) const {
  constexpr int64_t kFifth = 5;
  const int64_t sum = bytes(), rest = sets_.empty() ? 0 : sum - largest().bytes;
  return small || rest >= sum / kFifth ? rest : 0;
}

std::pair<WeightSets::Sizes, bool> WeightSets::copies() const {
  std::pair<Sizes, bool> all{written_, !written_.empty()};
  for (const auto& [line, set] : sets_) {
    if (&set == &largest()) continue;
    for (const auto& [size, count] : set.sizes) all.first[size] += count;
    all.second = all.second || set.copied;
  }
  return all;
}

int64_t WeightSets::bytes_left(bool deep) const {
  if (sets_.empty()) return -1;
  const auto [made, of_state_dict] = copies();
  const Sizes& first = largest().sizes;
  const int64_t tied = of_state_dict && !deep ? tied_bytes() : 0, layers = this->layers();
  bool repeats = false;  // some matrix of the layers was copied twice: then all were that a copy takes
  for (const auto& [size, count] : made) {
    const auto same = first.find(size);
    if (same == first.end() || count > same->second + (size == tied ? 1 : 0)) return -1;
    repeats = repeats || (size >= kLeastMatrix && same->second >= kFewestLayers && count >= 2 * same->second / layers);
  }
  int64_t left = 0;
  for (const auto& [size, count] : first) {
    const auto copied = made.find(size);
    if (copied == made.end() && repeats && count >= kFewestLayers) continue;  // of every layer, but passed over
    left += size * (count - (copied == made.end() ? 0 : copied->second));
  }
  return left + tied;
}

int64_t WeightSets::layers() const {
  int64_t divisor = 0;
  if (sets_.empty()) return 0;
  for (const auto& [size, count] : largest().sizes)
    if (size >= kLeastMatrix && count >= kFewestLayers) divisor = std::gcd(divisor, count);
  return divisor;
}

int64_t WeightSets::largest_of_layer() const {
  int64_t most = 0;
  if (sets_.empty()) return 0;
  for (const auto& [size, count] : largest().sizes)
    if (count >= kFewestLayers) most = std::max(most, size);
  return most;
}

int64_t WeightSets::tied_bytes() const {
  if (sets_.empty()) return 0;
  const Sizes& first = largest().sizes;
  const auto of_no_layer =
      std::find_if(first.rbegin(), first.rend(), [](const auto& one) { return one.second < kFewestLayers; });
  return of_no_layer != first.rend() && of_no_layer->second == 1 ? of_no_layer->first : 0;
}

}  // namespace snug
