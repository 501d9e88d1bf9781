#pragma once
// Time of a run.

#include <algorithm>
#include <chrono>

namespace snug {

// Seconds that passed. A clock that jumps back stood still: rates and times left are never negative.
class Stopwatch {
 public:
  double lap() {
    const Clock::time_point now = Clock::now();
    const double seconds = std::max(0.0, std::chrono::duration<double>(now - last_).count());
    last_ = now;
    total_ += seconds;
    return seconds;
  }
  double total() const { return total_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  double total_ = 0;
};

}  // namespace snug
