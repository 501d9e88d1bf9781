#pragma once
// Follows a snapshot's trace event by event and knows at each what the allocator held. What was allocated before the trace
// begins (its buffer is a ring, or recording started late) is put in first, from the segments and from frees without an
// allocation; the segments' own past is found by walking the trace back from its end. So the state at an oom event is the
// one in which it was raised, not what the unwinding left. Block sizes follow the allocator's rules at the addresses that
// the trace names; the policy that chose them is allocator.h's business.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "torch/allocator_rules.h"
#include "torch/memory_totals.h"
#include "torch/snapshot.h"

namespace snug {

// A block that is active.
struct LiveBlock {
  static constexpr size_t kBefore = static_cast<size_t>(-1);

  int64_t bytes = 0, requested_bytes = 0;
  StackId stack = 0;       // where it was allocated; 0 if not known
  size_t event = kBefore;  // its allocation in the trace; kBefore: it is older than the trace
  bool pending = false;    // freed, still used by another stream
  bool exact = false;      // the size is the file's
  size_t first = 0;        // the position of a replay from which it has these bytes
  size_t asked = kBefore;  // … from which it is pending; kBefore: not yet
};

// Memory of the device at neighbouring addresses.
struct SegmentExtent {
  int64_t bytes = 0, active_bytes = 0;
  bool expandable = false, small = false;
};

// Who is told, while a replay plays, of what changes. All are set, or none.
struct ReplayHooks {
  std::function<void(int64_t address, const LiveBlock&)> block_began, block_ended;  // one that grows ends and begins
  std::function<void(int64_t address, const SegmentExtent&)> memory_added;
  std::function<void(int64_t address, int64_t bytes)> memory_removed;  // also where there is none
};

class Replay {
 public:
  // `snapshot` must outlive it. A device without a trace has its segments and no events.
  Replay(const Snapshot& snapshot, int device);

  int device() const { return device_; }

  // Events played so far. The state is the one after them; before any: what is older than the trace.
  size_t position() const { return position_; }
  size_t events() const { return snapshot_.event_count(device_); }

  // Of what is played from here on.
  void tell(ReplayHooks hooks) { hooks_ = std::move(hooks); }

  // Plays one event; false at the end.
  bool next();

  // Plays up to `event`, which is not played: the state in which it happened. Only forward.
  void advance_to(size_t event);

  const MemoryTotals& totals() const { return totals_; }
  const std::map<int64_t, LiveBlock>& live() const { return live_; }              // by address
  const std::map<int64_t, SegmentExtent>& segments() const { return segments_; }  // by address
  int64_t largest_free_bytes() const;  // the largest gap in a segment, of any pool

  // Bytes allocated over others that were never freed, or outside of every segment: above 0, the file contradicts itself.
  int64_t contradicted_bytes() const { return contradicted_; }

 private:
  using Segments = std::map<int64_t, SegmentExtent>;
  using Blocks = std::map<int64_t, LiveBlock>;

  void take_segments();
  void take_older();
  void take_slack(Blocks::iterator block, int64_t until);
  void play(const Event& event, size_t index);
  void allocate(const Event& event, size_t index);
  void request_free(const Event& event);
  void complete_free(int64_t address);
  void put(int64_t address, const LiveBlock& block);
  void add_memory(int64_t address, int64_t bytes, bool expandable, bool small);
  void remove_memory(int64_t address, int64_t bytes);
  void split_memory(int64_t address);
  Segments::iterator segment_of(int64_t address);
  int64_t block_bytes(int64_t address, int64_t requested);
  void set_active(SegmentExtent& segment, int64_t active_bytes);
  void count_active_again(Segments::iterator segment);

  const Snapshot& snapshot_;
  const int device_;
  const AllocatorSettings settings_;
  size_t position_ = 0;
  size_t after_ = 0;  // the position that what is being put or played leads to
  ReplayHooks hooks_;
  MemoryTotals totals_;
  Blocks live_;
  Segments segments_;
  int64_t contradicted_ = 0, recounted_ = 0;
};

// The events at which memory ran out, in order.
std::vector<size_t> oom_events(const Snapshot& snapshot, int device);

struct Peak {
  size_t position = 0;  // events played when it was reached: advance_to(position) shows it
  MemoryTotals totals;
};

// The moment of the most allocated bytes, the first of equals.
Peak peak_of(const Snapshot& snapshot, int device);

// What is live, added up by stack, largest first.
struct LiveStack {
  StackId stack = 0;
  int64_t bytes = 0, blocks = 0;
  bool older = false;  // than the trace
  int64_t requested_bytes = 0;
};
std::vector<LiveStack> live_by_stack(const Replay& replay);

}  // namespace snug
