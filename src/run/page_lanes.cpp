#include "run/page_lanes.h"

#include <chrono>
#include <span>
#include <utility>

namespace snug {

namespace {

bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

bool shares_memory(const Page& page, const std::byte* memory, int64_t bytes) {
  return memory < page.memory + page.bytes && page.memory < memory + bytes;
}

// One of them writes what both are made of, in memory or away from it.
bool must_wait(const Page& next, const Page& before) {
  if (shares_memory(before, next.memory, next.bytes) && (next.into_memory || before.into_memory)) return true;
  return before.home == next.home && overlap(before.far, before.bytes, next.far, next.bytes) &&
         (!next.into_memory || !before.into_memory);
}

}  // namespace

template <class Meets>
void PageLanes::wait_where(Meets&& meets) {
  using Clock = std::chrono::steady_clock;
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    const Flight flight = flights_[i];
    if (!meets(flight)) {
      flights_[kept++] = flight;
      continue;
    }
    const auto begin = Clock::now();
    homes_.wait(flight.page.home, flight.ticket, !flight.page.into_memory);
    traffic_.waited += std::chrono::duration<double>(Clock::now() - begin).count();
  }
  count_ = kept;
}

void PageLanes::begin(const Page& page, int depth) {
  if (count_ > 0) wait_where([&](const Flight& flight) { return must_wait(page, flight.page); });
  if (count_ == flights_.size()) {
    bool first = true;
    wait_where([&](const Flight&) { return std::exchange(first, false); });
  }
  (page.into_memory ? traffic_.fetched : traffic_.sent) += page.bytes;
  const std::span<std::byte> memory(page.memory, static_cast<size_t>(page.bytes));
  const auto ticket =
      page.into_memory ? homes_.begin_read(page.home, page.far, memory) : homes_.begin_write(page.home, page.far, memory);
  if (ticket != PageFile::kDone) flights_[count_++] = {page, ticket, depth};
}

void PageLanes::wait_for(const std::byte* memory, int64_t bytes, bool writes) {
  wait_where([&](const Flight& flight) {
    return (writes || flight.page.into_memory) && shares_memory(flight.page, memory, bytes);
  });
}

void PageLanes::wait_for_depth(int depth) {
  wait_where([&](const Flight& flight) { return flight.depth >= depth; });
}

}  // namespace snug
