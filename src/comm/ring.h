#pragma once
// Collectives as rings (Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009):
// every rank sends to the next and receives from the one before, so each byte that a rank lacks crosses a link once, and
// sums come in a fixed order.

#include <memory>

#include "comm/communicator.h"

namespace snug {

// How a rank reaches its neighbours.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t ranks() const = 0;
  // Sends to the next rank while it receives from the one before; the sizes may differ, and either may be empty. Throws
  // RankLost when a rank has failed or is gone.
  virtual void exchange(std::span<const std::byte> to_next, std::span<std::byte> from_previous) = 0;
  virtual bool fail() noexcept = 0;  // see Communicator
};

std::unique_ptr<Communicator> make_ring(std::unique_ptr<Channel> channel);

}  // namespace snug
