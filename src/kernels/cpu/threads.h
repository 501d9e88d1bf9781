#pragma once
// How many threads oneDNN uses, which it asks OpenMP; built without OpenMP, everything here runs on one thread.

#include <cstdint>

namespace snug::kernels {

// While it lives, OpenMP gives at most this many threads to parallel regions opened by this thread.
class ThreadLimit {
 public:
  explicit ThreadLimit(int32_t threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int32_t before_ = 1;
};

}  // namespace snug::kernels
