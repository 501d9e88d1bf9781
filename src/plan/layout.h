#pragma once
// Layout: an offset for each storage in its home. Placing intervals of time in memory is dynamic storage allocation (Gergov
// 1999; Pisarchyk & Lee 2020, greedy by size); several orders are tried, the best kept.

#include <array>
#include <cstdint>
#include <vector>

#include "plan/liveness.h"
#include "program/program.h"

namespace snug {

struct Placed {
  int64_t offset = -1;  // of instance 0, bytes from the start of its home; -1: never used
  // Runs of instances that lie elsewhere: (first instance, offset of that instance), ascending.
  std::vector<std::pair<int64_t, int64_t>> runs;
};

// One home: an arena in memory, or a file.
struct HomeLayout {
  int64_t bytes = 0;            // run_bytes + dynamic_bytes
  int64_t run_bytes = 0;        // storages that live from load to save; they come first
  int64_t dynamic_bytes = 0;    // what the computed storages need
  int64_t peak_live_bytes = 0;  // lower bound of dynamic_bytes: the most that is live at once
  int32_t peak_time = 0;
  std::vector<int64_t> live_bytes;  // by point of time, computed storages
};

struct Layout {
  std::vector<Placed> storages;  // by StorageId
  std::vector<int64_t> stride;   // by StorageId: bytes from one instance to the next inside a run
  std::array<HomeLayout, kHomeCount> homes;
  Timeline timeline;

  const HomeLayout& of(Home home) const { return homes[static_cast<size_t>(home)]; }
  HomeLayout& of(Home home) { return homes[static_cast<size_t>(home)]; }
  const HomeLayout& device() const { return of(Home::device); }

  int64_t offset_of(StorageId storage, int64_t instance) const;
};

// `red_zone`: bytes left free after every instance on the device (for shadow runs).
Layout lay_out(const Program& program, int64_t red_zone = 0);

// The same, but storages that live throughout the run lie where `shared` has them; the two Programs number them alike.
Layout lay_out_within(const Program& program, const Layout& shared);

}  // namespace snug
