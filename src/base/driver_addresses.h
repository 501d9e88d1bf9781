#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace snug {

// Where a CUDA driver puts what cudaMalloc asks for: in chunks of whole 32 MiB, each in the highest gap that it fits; what a
// chunk has left serves later requests, the latest chunk first. Read off the segments of an H100's snapshots (driver 580).
// PyTorch's allocator takes the lowest of blocks that fit equally well, so this order decides what it reserves.
class DriverAddresses {
 public:
  static constexpr int64_t kPage = int64_t{2} << 20U;  // every address and size is of whole pages

  // Addresses of [begin, end), both of whole chunks.
  DriverAddresses(int64_t begin, int64_t end) : gaps_{{begin, end - begin}} {}

  std::optional<int64_t> take(int64_t bytes);      // none: no gap is large enough
  bool give_back(int64_t address);                 // false: not one that was taken
  void leave_out(int64_t address, int64_t bytes);  // for good, of what is not taken

 private:
  struct Chunk {
    int64_t begin = 0, bytes = 0, left = 0;
    std::map<int64_t, int64_t> taken;  // address → bytes
  };

  static std::optional<int64_t> hole(const Chunk& chunk, int64_t bytes);
  void return_gap(int64_t begin, int64_t bytes);

  std::map<int64_t, int64_t> gaps_;  // begin → bytes, never two that touch
  std::vector<Chunk> chunks_;        // the latest is the last
};

}  // namespace snug
