#pragma once
// When ops of several lanes are done: each begins when its lane is free and what it meets in a storage is: what wrote what
// it reads, what uses what it writes.

#include <array>
#include <map>
#include <tuple>

#include "program/program.h"

namespace snug {

class LaneClock {
 public:
  explicit LaneClock(const Program& program) : program_(program) {}

  // When an op runs, in seconds from the start, and since when its lane was free for it.
  struct Times {
    double free = 0, begin = 0, end = 0;
  };

  // An op of so many seconds, with the views of `layer`, or of a chunk where chunks come one after the other.
  Times run(const Op& op, int64_t layer, double seconds);
  // Something of the compute lane whose lanes have met at its end.
  void run(double seconds);
  // All lanes wait for each other, as at a region's end.
  void meet() { free_.fill(end()); }
  // When all lanes are done, in seconds from the start.
  double end() const;

 private:
  struct Done {
    double written = 0, used = 0;
  };

  const Program& program_;
  std::array<double, kLaneCount> free_{};
  // By storage, instance, and whose turn it is, or where it lies.
  std::map<std::tuple<StorageId, int64_t, int64_t>, Done> done_;
};

}  // namespace snug
