#pragma once
// Reads and writes of one file that go on while the processor computes: io_uring, which the kernel serves without a thread
// of ours. Bytes, memory and places are multiples of kFarAlignment, since they pass by the page cache (O_DIRECT).

#include <liburing.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace snug {

class PageRing {
 public:
  using Ticket = int32_t;

  // `fd`: opened with O_DIRECT, and open as long as this.
  explicit PageRing(int fd);
  ~PageRing();
  PageRing(const PageRing&) = delete;
  PageRing& operator=(const PageRing&) = delete;

  // False where the system has no io_uring or does not allow it, as many containers do not: then nothing may be begun.
  bool works() const { return works_; }

  // Begins one; at most kMost may be on their way.
  Ticket read(int64_t offset, std::byte* memory, int64_t bytes) { return begin(false, offset, memory, bytes); }
  Ticket write(int64_t offset, std::byte* memory, int64_t bytes) { return begin(true, offset, memory, bytes); }

  // Returns when it is done; each ticket once: 0, or the error's number.
  int wait(Ticket ticket);

  static constexpr size_t kMost = 64;

 private:
  struct Request {
    int64_t offset = 0, bytes = 0;  // what is left
    std::byte* memory = nullptr;
    int error = 0;
    bool writes = false, under_way = false, taken = false;
  };

  Ticket begin(bool writes, int64_t offset, std::byte* memory, int64_t bytes);
  bool any_under_way() const;
  void submit(Ticket ticket);
  void reap();

  int fd_;
  io_uring ring_{};
  bool works_;
  std::array<Request, kMost> requests_{};
};

}  // namespace snug
