#pragma once
// The arena: one piece of memory for each home, as large as the Layout says, committed (touched) before the first step.
// Nothing else of ours is allocated afterwards.

#include <cstddef>
#include <cstdint>
#include <span>

namespace snug {

class Arena {
 public:
  // Reserves `bytes` (rounded up to pages). Throws Error if the system does not give them.
  explicit Arena(int64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Touches every page, before anything is written there: what is committed cannot be refused later.
  void commit();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace snug
