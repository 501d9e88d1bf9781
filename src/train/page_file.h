#pragma once
// The far home of a run on the CPU: one file, as large as the Layout says, its room reserved before the first step. It has
// no name once it is open, so the system takes its room back however the run ends. No threads: the next chunk is asked for
// ahead, and what was written goes to the disk while the next chunk is worked on, then leaves the page cache.

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
  void reserve() const;
  void drop_previous();
  [[noreturn]] void fail(const char* what, int code) const;

  std::filesystem::path path_;
  UniqueFd fd_;
  int64_t bytes_ = 0;
  int64_t previous_ = 0, previous_bytes_ = 0;  // of the last write, on its way to the disk
  bool written_ = false;
};

}  // namespace snug
