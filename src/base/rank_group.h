#pragma once
// The ranks of a run as a mesh: replicas of what is shared out, times parts that it is cut into. Ranks of one replica follow
// one another, so that they lie on one machine where machines are filled in order.

#include <cstdint>

namespace snug {

// Who takes part in a collective: all; those of one replica, which hold a part each; those of all replicas that hold the
// same part.
enum class RankGroup : uint8_t { all, shard, replica };
constexpr int kRankGroupCount = 3;

struct RankMesh {
  int64_t ranks = 1;
  int64_t parts = 1;  // of a replica

  int64_t replicas() const { return ranks / parts; }
  int64_t size(RankGroup group) const {
    return group == RankGroup::all ? ranks : group == RankGroup::shard ? parts : replicas();
  }
  // The place of a rank in its group.
  int64_t index(RankGroup group, int64_t rank) const {
    return group == RankGroup::all ? rank : group == RankGroup::shard ? rank % parts : rank / parts;
  }
  // The rank that has a place in the group of `rank`.
  int64_t member(RankGroup group, int64_t rank, int64_t place) const {
    if (group == RankGroup::all) return place;
    return group == RankGroup::shard ? rank / parts * parts + place : place * parts + rank % parts;
  }
  int64_t next(RankGroup group, int64_t rank) const { return member(group, rank, (index(group, rank) + 1) % size(group)); }
  int64_t previous(RankGroup group, int64_t rank) const {
    return member(group, rank, (index(group, rank) + size(group) - 1) % size(group));
  }
};

}  // namespace snug
