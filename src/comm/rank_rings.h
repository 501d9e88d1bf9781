#pragma once
// The rings of a rank: of all ranks, of its replica, of those that hold the same part in other replicas.

#include <array>
#include <functional>
#include <memory>

#include "base/rank_group.h"
#include "comm/ring.h"

namespace snug {

class RankRings {
 public:
  // `channel_of`: makes this rank's end in the ring of a group. Groups that are all ranks share a ring; of one rank there is
  // none.
  RankRings(const RankMesh& mesh, const std::function<std::unique_ptr<Channel>(RankGroup)>& channel_of);

  const RankMesh& mesh() const { return mesh_; }
  Communicator& all() const { return *rings_[0]; }
  Communicator& of(RankGroup group) const;
  int64_t rank() const { return all().rank(); }
  int64_t ranks() const { return mesh_.ranks; }
  // Whose part of what is shared out this rank holds.
  int64_t part() const { return mesh_.index(RankGroup::shard, rank()); }

  bool fail() const noexcept { return all().fail(); }
  int64_t sent_bytes() const;  // in all of them

 private:
  RankMesh mesh_;
  std::array<std::unique_ptr<Communicator>, kRankGroupCount> rings_;
};

}  // namespace snug
