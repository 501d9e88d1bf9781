#include "run/page_ring.h"

#include <algorithm>
#include <cerrno>
#include <stdexcept>

namespace snug {

namespace {
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of one read or write of the kernel's
}

PageRing::PageRing(int fd) : fd_(fd), works_(io_uring_queue_init(kMost, &ring_, 0) == 0) {}

// Nothing may be written to memory that is no longer ours.
PageRing::~PageRing() {
  if (!works_) return;
  while (any_under_way()) reap();
  io_uring_queue_exit(&ring_);
}

bool PageRing::any_under_way() const {
  return std::any_of(requests_.begin(), requests_.end(), [](const Request& request) { return request.under_way; });
}

PageRing::Ticket PageRing::begin(bool writes, int64_t offset, std::byte* memory, int64_t bytes) {
  const auto free = std::find_if(requests_.begin(), requests_.end(), [](const Request& request) { return !request.taken; });
  if (free == requests_.end()) throw std::logic_error("more pages on their way than are waited for");
  *free = {.offset = offset, .bytes = bytes, .memory = memory, .writes = writes, .taken = true};
  const auto ticket = static_cast<Ticket>(free - requests_.begin());
  submit(ticket);
  return ticket;
}

void PageRing::submit(Ticket ticket) {
  Request& request = requests_[static_cast<size_t>(ticket)];
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry == nullptr) throw std::logic_error("the ring has an entry for each request");
  const auto bytes = static_cast<unsigned>(std::min(request.bytes, kMostBytes));
  const auto offset = static_cast<uint64_t>(request.offset);
  if (request.writes) {
    io_uring_prep_write(entry, fd_, request.memory, bytes, offset);
  } else {
    io_uring_prep_read(entry, fd_, request.memory, bytes, offset);
  }
  io_uring_sqe_set_data64(entry, static_cast<uint64_t>(ticket));
  int result = io_uring_submit(&ring_);
  while (result == -EINTR || ((result == -EAGAIN || result == -EBUSY) && any_under_way())) {
    if (result != -EINTR) reap();  // the kernel asks for patience
    result = io_uring_submit(&ring_);
  }
  request.under_way = result >= 0;
  if (result < 0) request.error = -result;
}

// Takes in one that is done, and sends on what it left.
void PageRing::reap() {
  io_uring_cqe* done = nullptr;
  int result = 0;
  do {
    result = io_uring_wait_cqe(&ring_, &done);
  } while (result == -EINTR);
  if (result != 0) throw std::logic_error("the ring does not answer");
  const auto ticket = static_cast<Ticket>(io_uring_cqe_get_data64(done));
  const int64_t moved = done->res;
  io_uring_cqe_seen(&ring_, done);
  Request& request = requests_[static_cast<size_t>(ticket)];
  request.under_way = false;
  if (moved == -EINTR || moved == -EAGAIN) return submit(ticket);
  if (moved <= 0) {
    request.error = moved < 0 ? static_cast<int>(-moved) : EIO;  // the file ends where it should not
    return;
  }
  request.offset += moved;
  request.memory += moved;
  request.bytes -= moved;
  if (request.bytes > 0) submit(ticket);
}

int PageRing::wait(Ticket ticket) {
  Request& request = requests_[static_cast<size_t>(ticket)];
  while (request.under_way) reap();
  request.taken = false;
  return request.error;
}

}  // namespace snug
