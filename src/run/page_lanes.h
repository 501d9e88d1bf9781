#pragma once
// The copy lanes of a run on the CPU: pages that are on their way between memory and another home while ops go on. Whoever
// is about to use bytes that a page is made of waits for it first.

#include <array>
#include <cstddef>
#include <cstdint>

#include "run/homes.h"

namespace snug {

// Bytes that lie in `memory` and, from byte `far` on, in `home`.
struct Page {
  Home home = Home::disk;
  int64_t far = 0, bytes = 0;
  std::byte* memory = nullptr;
  bool into_memory = false;
};

class PageLanes {
 public:
  // What has been moved since the run began, and how long ops waited for it.
  struct Traffic {
    int64_t fetched = 0, sent = 0;  // bytes
    double waited = 0;              // seconds
  };

  explicit PageLanes(Homes& homes) : homes_(homes) {}

  // Begins to move a page, once those that it must not overtake have arrived. `depth`: of the region that it belongs to.
  // Each throws Error if the disk fails.
  void begin(const Page& page, int depth);
  // Until nobody else is at work on these bytes; who only reads them need not wait for who does.
  void wait_for(const std::byte* memory, int64_t bytes, bool writes);
  // Until all pages of regions of this depth and deeper have arrived.
  void wait_for_depth(int depth);

  bool idle() const { return count_ == 0; }
  const Traffic& traffic() const { return traffic_; }

 private:
  struct Flight {
    Page page;
    PageFile::Ticket ticket = PageFile::kDone;
    int depth = 0;
  };

  template <class Meets>
  void wait_where(Meets&& meets);

  Homes& homes_;
  std::array<Flight, PageFile::kMostPages> flights_{};
  size_t count_ = 0;
  Traffic traffic_;
};

}  // namespace snug
