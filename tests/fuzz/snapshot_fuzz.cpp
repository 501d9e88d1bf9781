// Fuzz target: PyTorch's memory snapshots, their replay and the simulation of what they ask for. Whatever comes in, the
// answer is a value or an Error, and totals stay what they are said to be.

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "torch/allocator.h"
#include "torch/lifetimes.h"
#include "torch/replay.h"
#include "torch/snapshot.h"

namespace {

void check(const snug::MemoryTotals& totals) {
  if (totals.allocated_bytes < 0 || totals.allocated_bytes > totals.active_bytes) std::abort();
  if (totals.cached_bytes < 0 || totals.cached_bytes > totals.reserved_bytes) std::abort();
}

void replay(const snug::Snapshot& snapshot, int device) {
  snug::Replay replay(snapshot, device);
  check(replay.totals());
  while (replay.next()) check(replay.totals());
  static_cast<void>(replay.largest_free_bytes());
  static_cast<void>(snug::live_by_stack(replay));
  static_cast<void>(snug::peak_of(snapshot, device));
  static_cast<void>(snug::oom_events(snapshot, device));
}

// What lives to the end is what is held there.
void live(const snug::Snapshot& snapshot, int device) {
  snug::Replay replay(snapshot, device);
  replay.advance_to(replay.events());
  const size_t end = replay.events() + 1;
  int64_t active = 0, reserved = 0;
  snug::tell_lives(snapshot, device,
                   {.block =
                        [&](const snug::BlockLife& life) {
                          if (life.first >= life.end || life.asked > life.end) std::abort();
                          if (life.end == end) active += life.bytes;
                        },
                    .reserved =
                        [&](const snug::ReservedLife& life) {
                          if (life.first >= life.end || life.bytes <= 0) std::abort();
                          if (life.end == end) reserved += life.bytes;
                        }});
  if (active != replay.totals().active_bytes || reserved != replay.totals().reserved_bytes) std::abort();
}

void simulate(const snug::Snapshot& snapshot, int device) {
  snug::AllocatorSettings settings = snug::settings_of(snapshot.settings);
  settings.limit_bytes = int64_t{1} << 40U;
  if (snapshot.event_count(device) % 2 == 1) settings.allowed_bytes = int64_t{1} << 32U;
  snug::Allocator allocator(settings);
  for (const snug::Segment& segment : snapshot.segments) allocator.adopt(segment);
  for (size_t i = 0; i < snapshot.event_count(device); ++i) {
    const snug::Event& event = snapshot.event(device, i);
    try {
      if (event.action == snug::Action::alloc)
        static_cast<void>(allocator.allocate(event.bytes, snapshot.context(event).stream, snapshot.context(event).pool));
      if (event.action == snug::Action::free_completed) allocator.free(event.address);
    } catch (const snug::Error&) {  // frees of what the simulation put elsewhere
    }
    check(allocator.totals());
  }
  allocator.release_cached();
  check(allocator.totals());
  static_cast<void>(allocator.segments());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const snug::Snapshot snapshot = snug::read_snapshot(std::as_bytes(std::span(data, size)), "fuzz");
    for (int device = 0; device < 3; ++device) {
      replay(snapshot, device);
      live(snapshot, device);
    }
    simulate(snapshot, 0);
  } catch (const snug::Error&) {
  }
  return 0;
}
