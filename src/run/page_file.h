#pragma once
// The far home of a run on the CPU: one file, as large as the Layout says, its room reserved before the first step. It has
// no name once it is open, so the system takes its room back however the run ends. No threads: the next chunk is asked for
// ahead, and a round of writes goes to the disk while the next round is worked on, then leaves the page cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "formats/file.h"

namespace snug {

class PageFile {
 public:
  // `path` tells where, and is what errors name; whatever a run that was killed left under it goes. All bytes are 0. Throws
  // Error, also where there is no room.
  PageFile(std::filesystem::path path, int64_t bytes);

  // Each throws Error if the disk fails.
  void read(int64_t offset, std::span<std::byte> out) const;
  void write(int64_t offset, std::span<const std::byte> bytes);
  void clear(int64_t offset, int64_t bytes);

  // Tells the system that these bytes will be read soon.
  void expect(int64_t offset, int64_t bytes) const;

  int64_t bytes() const { return bytes_; }

 private:
  // Writes that go to the disk together: waiting for each small one would cost more than the disk.
  struct Round {
    struct Range {
      int64_t offset = 0, bytes = 0;
    };
    std::array<Range, 64> ranges;
    size_t count = 0;
    int64_t bytes = 0;
  };

  void reserve() const;
  void send_round();
  [[noreturn]] void fail(const char* what, int code) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  int64_t bytes_ = 0;
  Round round_, previous_;  // being written to; on its way to the disk
  bool written_ = false;
};

}  // namespace snug
