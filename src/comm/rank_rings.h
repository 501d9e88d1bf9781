#pragma once
// The rings of a rank: one for each group that it is in.

#include <array>
#include <functional>
#include <memory>

#include "base/rank_group.h"
#include "comm/places.h"
#include "comm/ring.h"

namespace snug {

class RankRings {
 public:
  // `channel_of`: makes this rank's end in the ring of a group. Groups of the same ranks share a ring; of one rank there is
  // none.
  RankRings(const RankMesh& mesh, int64_t rank, const std::function<std::unique_ptr<Channel>(RankGroup)>& channel_of);

  const RankMesh& mesh() const { return mesh_; }
  Communicator& all() const { return *rings_[0]; }
  Communicator& of(RankGroup group) const;
  int64_t rank() const { return all().rank(); }
  int64_t ranks() const { return mesh_.ranks; }

  // Who sees whose output directory; all ranks ask for it at once.
  void find_places(const std::filesystem::path& output) { places_ = Places(all(), output); }
  const Places& places() const { return places_; }

  bool fail() const noexcept { return all().fail(); }
  int64_t sent_bytes() const;  // in all of them

 private:
  RankMesh mesh_;
  std::array<std::unique_ptr<Communicator>, kRankGroupCount> rings_;
  Places places_;
};

}  // namespace snug
