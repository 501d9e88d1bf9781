#pragma once
// Ranks of one machine reach each other through memory that they share: for each rank a mailbox that the one before fills
// and it empties. Who waits sleeps.

#include <memory>
#include <span>

#include "base/rank_group.h"
#include "comm/ring.h"
#include "formats/file.h"

namespace snug {

constexpr int64_t kMostLocalRanks = 256;

// Bytes of memory that so many ranks share, a mailbox for each in the ring of each group. A rank touches two of each ring.
int64_t shared_bytes(int64_t ranks);

// A rank's end in the ring of a group. `shared`: zeroed before the first rank comes, the same bytes for all; it outlives the
// channel. That of all ranks must be made first and go last.
std::unique_ptr<Channel> make_mailbox_channel(std::span<std::byte> shared, const RankMesh& mesh, RankGroup group,
                                              int64_t rank);

// A file in memory for so many ranks, which processes that are started with it open share. Throws Error.
UniqueFd make_shared_memory(int64_t ranks);
// A rank's end in that file, as above. Throws Error if it is not made for so many.
std::unique_ptr<Channel> open_shared_memory(int fd, const RankMesh& mesh, RankGroup group, int64_t rank);

}  // namespace snug
