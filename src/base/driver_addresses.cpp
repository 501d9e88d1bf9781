#include "base/driver_addresses.h"

#include <algorithm>
#include <iterator>

namespace snug {
namespace {

constexpr int64_t kChunk = int64_t{32} << 20U;

int64_t whole(int64_t bytes, int64_t unit) { return (std::max<int64_t>(bytes, 1) + unit - 1) / unit * unit; }

}  // namespace

std::optional<int64_t> DriverAddresses::take(int64_t bytes) {
  if (bytes > INT64_MAX - kChunk) return std::nullopt;
  const int64_t need = whole(bytes, kPage);
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
    if (const auto found = hole(*chunk, need)) {
      chunk->taken.emplace(*found, need);
      chunk->left -= need;
      return found;
    }
  const int64_t size = whole(need, kChunk);
  const auto gap = std::find_if(gaps_.rbegin(), gaps_.rend(), [&](const auto& g) { return g.second >= size; });
  if (gap == gaps_.rend()) return std::nullopt;
  const int64_t begin = gap->first + gap->second - size;
  gap->second -= size;
  if (gap->second == 0) gaps_.erase(std::prev(gap.base()));
  chunks_.push_back({begin, size, size - need, {{begin, need}}});
  return begin;
}

bool DriverAddresses::give_back(int64_t address) {
  const auto chunk =
      std::find_if(chunks_.rbegin(), chunks_.rend(), [&](const Chunk& c) { return c.taken.contains(address); });
  if (chunk == chunks_.rend()) return false;
  chunk->left += chunk->taken.at(address);
  chunk->taken.erase(address);
  if (chunk->taken.empty()) {
    return_gap(chunk->begin, chunk->bytes);
    chunks_.erase(std::prev(chunk.base()));
  }
  return true;
}

void DriverAddresses::leave_out(int64_t address, int64_t bytes) {
  const int64_t end = address > INT64_MAX - bytes ? INT64_MAX : address + bytes;
  auto gap = gaps_.upper_bound(address);
  if (gap != gaps_.begin()) --gap;
  while (gap != gaps_.end() && gap->first < end) {
    const auto [begin, size] = *gap;
    const int64_t gap_end = begin + size;
    if (gap_end <= address) {
      ++gap;
      continue;
    }
    gap = gaps_.erase(gap);
    const int64_t below = address / kChunk * kChunk;
    if (begin < below) gaps_.emplace(begin, below - begin);
    if (end > gap_end - kChunk) continue;
    const int64_t above = whole(end, kChunk);
    if (above < gap_end) gap = std::next(gaps_.emplace(above, gap_end - above).first);
  }
}

// The lowest place in a chunk that is free and large enough.
std::optional<int64_t> DriverAddresses::hole(const Chunk& chunk, int64_t bytes) {
  if (chunk.left < bytes) return std::nullopt;
  int64_t at = chunk.begin;
  for (const auto& [address, size] : chunk.taken) {
    if (address - at >= bytes) return at;
    at = address + size;
  }
  if (chunk.begin + chunk.bytes - at >= bytes) return at;
  return std::nullopt;
}

void DriverAddresses::return_gap(int64_t begin, int64_t bytes) {
  const auto after = gaps_.lower_bound(begin);
  if (after != gaps_.end() && after->first == begin + bytes) {
    bytes += after->second;
    gaps_.erase(after);
  }
  const auto next = gaps_.lower_bound(begin);
  if (next != gaps_.begin() && std::prev(next)->first + std::prev(next)->second == begin)
    std::prev(next)->second += bytes;
  else
    gaps_.emplace(begin, bytes);
}

}  // namespace snug
