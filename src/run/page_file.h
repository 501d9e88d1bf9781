#pragma once
// The far home of a run on the CPU: one file, as large as the Layout says, its room reserved before the first step. It has
// no name once it is open, so the system takes its room back however the run ends. Pages go past the page cache while ops
// run, without a thread of ours, where the system can (O_DIRECT, io_uring); else, and for whoever loads and saves, by plain
// reads and writes, where a round of writes goes to the disk while the next is worked on, then leaves the page cache.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "formats/file.h"
#include "run/page_ring.h"

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

  // Pages: whole multiples of kFarAlignment, in place, size and memory. Each may be done at once; else it goes on until it
  // is waited for, each ticket once, and its memory is the disk's until then. At most kMostPages on their way.
  using Ticket = PageRing::Ticket;
  static constexpr Ticket kDone = -1;
  static constexpr size_t kMostPages = PageRing::kMost;
  Ticket begin_read(int64_t offset, std::span<std::byte> out);
  Ticket begin_write(int64_t offset, std::span<std::byte> bytes);
  void wait(Ticket ticket, bool was_write);

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
  UniqueFd fd_, direct_;
  std::optional<PageRing> ring_;  // over direct_
  int64_t bytes_ = 0;
  Round round_, previous_;  // being written to; on its way to the disk
  bool written_ = false;
};

}  // namespace snug
