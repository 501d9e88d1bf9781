#pragma once
// What one rendering may spend. Templates come from strangers: every evaluation costs a step, bytes that are worked through
// cost steps too, and what is alive is counted, so that a hostile template ends in an error within about a second. The meter
// of the thread's rendering is found here by values that are built deep inside it; without one nothing is counted.

#include <cstdint>
#include <utility>

#include "base/error.h"

namespace snug::chat {

class Meter {
 public:
  static constexpr int64_t kMostSteps = 5'000'000;
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  static constexpr int64_t kBytesPerStep = 64;

  Meter() : outer_(std::exchange(current_, this)) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter() { current_ = outer_; }

  static Meter* current() { return current_; }

  void spend(int64_t steps) {
    steps_ += steps;
    if (steps_ > kMostSteps)
      throw Error("the template takes more than 5 million steps", {}, "it is broken or hostile: use another");
  }
  void take(int64_t bytes) {
    if (bytes > kMostBytes - live_)
      throw Error("the template makes more than 64 MiB of text", {}, "it is broken or hostile: use another");
    live_ += bytes;
  }
  void give_back(int64_t bytes) { live_ -= bytes; }

 private:
  static inline thread_local Meter* current_ = nullptr;
  Meter* outer_;
  int64_t steps_ = 0, live_ = 0;
};

// Steps of the thread's rendering.
inline void spend(int64_t steps) {
  if (Meter* meter = Meter::current()) meter->spend(steps);
}

// Work that goes through `bytes` bytes.
inline void spend_bytes(int64_t bytes) { spend(1 + bytes / Meter::kBytesPerStep); }

// Bytes that are alive as long as this is.
class Charge {
 public:
  explicit Charge(int64_t bytes = 0) : meter_(Meter::current()) { add(bytes); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() { release(); }

  void add(int64_t bytes) {
    if (meter_ == nullptr) return;
    meter_->take(bytes);
    bytes_ += bytes;
  }
  void release() {
    if (meter_ != nullptr) meter_->give_back(std::exchange(bytes_, 0));
  }

 private:
  Meter* meter_;
  int64_t bytes_ = 0;
};

}  // namespace snug::chat
