#pragma once
// Liveness on the folded timeline: a layer loop takes one body's worth of time, and a storage is live at a point of it if it
// is live there in any iteration. Blocks with equal lifetimes (the inner layers of a run) stay one object. The peak on this
// timeline equals the peak of the unfolded run: in forward the last iteration, in backward the first, has everything the
// others have.

#include <array>
#include <vector>

#include "program/program.h"

namespace snug {

// One thing to place: `count` equal instances of a storage, side by side.
struct Life {
  StorageId storage = kNone;
  int64_t first_instance = 0;
  int64_t count = 1;
  int64_t bytes = 0;  // of all of them, each aligned
  int64_t alignment = kAlignment;
  Home home = Home::device;
  int32_t birth = 0;  // first point of time in use
  int32_t death = 0;  // last point of time in use

  bool is_alive(Home where, int32_t time) const { return home == where && birth <= time && time <= death; }
};

struct Timeline {
  std::vector<Life> lives;                      // computed storages only
  std::vector<Stage> stages;                    // of each point of time
  std::array<int64_t, kHomeCount> run_bytes{};  // by home: storages that live from load to save
};

// Throws std::logic_error if something is read before it is written.
Timeline live_ranges(const Program& program);

// Bytes of computed storages that are live at each point of time, in one home. `between`: beside each instance.
std::vector<int64_t> live_bytes(const Timeline& timeline, Home home, int64_t between = 0);

// The most of them.
int64_t peak_live_bytes(const Timeline& timeline, Home home = Home::device);

}  // namespace snug
