#pragma once
// What ranks do together. All ranks of a run call the same functions in the same order with the same sizes; none returns
// before this rank's part of it is done. A backend with collectives of its own (NCCL) stands behind the same interface.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/error.h"

namespace snug {

// Another rank cannot go on, and this one with it. The one rank that tells of a loss has `tells`; of a rank that failed by
// an Error of its own nobody else tells.
class RankLost : public Error {
 public:
  RankLost(const std::string& problem, const std::string& mend, bool tells_of_it)
      : Error(problem, "ranks", mend), tells(tells_of_it) {}
  const bool tells;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t ranks() const = 0;

  // Each throws RankLost when another rank has failed or is gone. Sums are of f32 or f64, in the same order of ranks
  // whatever the transport, so that the same world gives the same bits. `staging` holds what is received before it is added:
  // a whole number of elements, at least one.

  // x = the sum over ranks of x.
  virtual void all_reduce(std::span<std::byte> x, DType dtype, std::span<std::byte> staging) = 0;
  // out = this rank's part of the sum over ranks of x, or += it. x is ranks parts long and used up; out may lie in x, at
  // this rank's part.
  virtual void reduce_scatter(std::span<std::byte> x, DType dtype, std::span<std::byte> out, bool accumulate,
                              std::span<std::byte> staging) = 0;
  // out = all ranks' parts, one after the other. `part` may lie in out, at this rank's place.
  virtual void all_gather(std::span<const std::byte> part, std::span<std::byte> out) = 0;

  // out = the x of the rank before, while the own goes to the next.
  virtual void pass_on(std::span<const std::byte> x, std::span<std::byte> out) = 0;

  // x goes to the next rank, or comes from the one before, which ends when the other has asked for the same.
  virtual void send(std::span<const std::byte> x) = 0;
  virtual void receive(std::span<std::byte> x) = 0;

  // Until all ranks have come here.
  virtual void barrier() = 0;
  // Tells the other ranks that this one cannot go on, so that none waits for it. Whether it is the first to say so, as far
  // as it knows: that one tells why.
  virtual bool fail() noexcept = 0;

  // Bytes that this rank has sent, barriers apart.
  virtual int64_t sent_bytes() const = 0;
};

}  // namespace snug
