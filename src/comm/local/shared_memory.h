#pragma once
// Ranks of one machine reach each other through memory that they share: for each rank a mailbox that the one before fills
// and it empties. Who waits sleeps.

#include <memory>
#include <span>

#include "comm/ring.h"
#include "formats/file.h"

namespace snug {

constexpr int64_t kMostLocalRanks = 256;

// Bytes of memory that so many ranks share, and of those that each rank touches.
int64_t shared_bytes(int64_t ranks);
int64_t touched_shared_bytes();

// A rank's end. `shared`: zeroed before the first rank comes, the same bytes for all; it outlives the channel.
std::unique_ptr<Channel> make_mailbox_channel(std::span<std::byte> shared, int64_t rank, int64_t ranks);

// A file in memory for so many ranks, which processes that are started with it open share. Throws Error.
UniqueFd make_shared_memory(int64_t ranks);
// A rank's end in that file, of which it maps what it needs. Throws Error if it is not made for so many.
std::unique_ptr<Channel> open_shared_memory(int fd, int64_t rank, int64_t ranks);

}  // namespace snug
