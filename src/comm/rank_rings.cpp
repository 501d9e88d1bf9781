#include "comm/rank_rings.h"

namespace snug {

RankRings::RankRings(const RankMesh& mesh, int64_t rank,
                     const std::function<std::unique_ptr<Channel>(RankGroup)>& channel_of)
    : mesh_(mesh) {
  for (const RankGroup group : kRankGroups)
    if (mesh.has_ring(group) && mesh.is_in(group, rank)) rings_[static_cast<size_t>(group)] = make_ring(channel_of(group));
}

Communicator& RankRings::of(RankGroup group) const { return *rings_[static_cast<size_t>(mesh_.ring_of(group))]; }

int64_t RankRings::sent_bytes() const {
  int64_t sum = 0;
  for (const std::unique_ptr<Communicator>& ring : rings_)
    if (ring != nullptr) sum += ring->sent_bytes();
  return sum;
}

}  // namespace snug
