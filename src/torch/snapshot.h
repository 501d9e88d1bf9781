#pragma once
// A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) in compact form: what the allocator held when it was
// written, and the trace of events that led there, one a device. Every generation from 2.0 on is read; keys that are not
// known are ignored. Texts and stacks are numbers into tables. Judges nothing: replay.h says what the events amount to.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/chunked_array.h"
#include "torch/stacks.h"
#include "torch/texts.h"

namespace snug {

// Of a memory pool; {0, 0} is the common one, all others are private (CUDA graphs, torch.cuda.MemPool).
struct PoolId {
  int64_t owner = 0, number = 0;
  auto operator<=>(const PoolId&) const = default;
};

enum class BlockState : uint8_t { allocated, pending_free, inactive };  // pending: freed, but another stream still uses it

struct Block {
  int64_t address = 0;
  int64_t bytes = 0;            // rounded, with what was not worth splitting off
  int64_t requested_bytes = 0;  // 0 if not told; of an inactive block: left over from its last use
  StackId stack = 0;            // where it was allocated
  BlockState state = BlockState::inactive;
};

struct Segment {
  int64_t address = 0;
  int64_t bytes = 0, allocated_bytes = 0, active_bytes = 0, requested_bytes = 0;  // as the file says
  int64_t device = 0, stream = 0;
  PoolId pool;
  bool small = false, expandable = false;
  StackId stack = 0;
  std::vector<Block> blocks;  // in the order of their addresses; they fill the segment
};

enum class Action : uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  snapshot,
  oom,
  annotate,
  unknown
};

// One line of a trace, 32 bytes.
struct Event {
  int64_t address = 0;  // of oom: the bytes that the device had free
  int64_t bytes = 0;    // as asked for; of segment_*: real; of oom: what was asked for, rounded
  int64_t time_us = 0;  // 0 if not told
  StackId stack = 0;
  uint32_t context : 28 = 0;  // Snapshot::contexts
  Action action : 4 = Action::unknown;
};

// What many events share.
struct EventContext {
  int64_t stream = 0;
  PoolId pool;
  TextId compile_context = 0, user_metadata = 0;
  bool operator==(const EventContext&) const = default;
};

struct EventRange {
  size_t first = 0, count = 0;  // in Snapshot::events, oldest first
};

// The start or end of a phase: "Optimizer.step#AdamW.step", a record_function of the user.
struct Annotation {
  bool start = false;
  TextId name = 0;
  int64_t device = 0, time_us = 0;
};

// The settings of the allocator, as the file's table or, for what that leaves out, its text says; its defaults where neither
// does.
struct RecordedSettings {
  bool known = false;
  TextId text = 0;                           // PYTORCH_CUDA_ALLOC_CONF
  int64_t max_split_bytes = -1;              // -1: no limit
  int64_t max_non_split_rounding_bytes = 0;  // 0: the default
  int64_t large_segment_bytes = 0;           // 0: the default
  double memory_fraction = 1;                // of the device that may be reserved
  double garbage_collection_threshold = 0;   // share of the device; 0: off
  bool expandable_segments = false;
  std::array<int64_t, 16> roundup_divisions{};  // of 2^i MiB … 2^(i+1) MiB; 0: off
  bool native = true;                           // false: cudaMallocAsync's allocator, which these rules do not describe
  std::vector<std::string> unknown;             // settings of which nothing is known here
};

struct HostSegment {
  int64_t address = 0, bytes = 0;
  bool active = false;
};

struct Snapshot {
  Texts texts;
  Stacks stacks;
  ChunkedArray<Event> events;
  std::vector<EventContext> contexts;
  std::vector<Segment> segments;
  std::vector<EventRange> traces;  // by device
  std::vector<Annotation> annotations;
  RecordedSettings settings;
  std::vector<HostSegment> host_segments;  // pinned memory, where it was recorded
  std::vector<EventRange> host_traces;

  const Event& event(int device, size_t i) const { return events[traces[static_cast<size_t>(device)].first + i]; }
  size_t event_count(int device) const {
    return static_cast<size_t>(device) < traces.size() ? traces[static_cast<size_t>(device)].count : 0;
  }
  const EventContext& context(const Event& event) const { return contexts[event.context]; }
};

// Throws Error: not a pickle of plain data (formats/pickle.h), no snapshot, or more than bounded memory holds.
Snapshot read_snapshot(const std::filesystem::path& path);
Snapshot read_snapshot(std::span<const std::byte> pickle, const std::string& where);

}  // namespace snug
