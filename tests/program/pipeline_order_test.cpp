// The order in which stages work, played through for all of them at once.

#include "program/passes/pipeline_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace snug {
namespace {

// A turn of a stage.
struct Place {
  int64_t stage;
  PipelineTurn turn;
};

std::tuple<int64_t, bool, int64_t, int64_t> key_of(const Place& place) {
  return {place.stage, place.turn.ahead, place.turn.chunk, place.turn.micro_batch};
}

// Who sends to it, or receives from it: along stages, and from the last to the first one's next chunk; gradients back.
std::optional<Place> neighbour(const RankMesh& mesh, Place place, bool sender) {
  const int64_t last = mesh.pipeline * mesh.chunks - 1, step = place.turn.ahead == sender ? -1 : 1;
  const int64_t at = place.turn.chunk * mesh.pipeline + place.stage + step;
  if (at < 0 || at > last) return std::nullopt;
  place.stage = at % mesh.pipeline;
  place.turn.chunk = at / mesh.pipeline;
  return place;
}

// Plays all stages until none can go on. A forward takes 1, a backward 2. What is sent lies where it is until it is
// received: a backward waits until the same chunk's last rows of gradients are gone.
class Played {
 public:
  Played(const RankMesh& mesh, int64_t micro_batches) : mesh_(mesh) {
    for (int64_t stage = 0; stage < mesh.pipeline; ++stage) orders_.push_back(pipeline_order(mesh, stage, micro_batches));
    next_.resize(orders_.size());
    times_.resize(orders_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t stage = 0; stage < mesh.pipeline; ++stage)
        while (step(stage)) moved = true;
    }
  }

  bool all_done() const {
    for (size_t i = 0; i < orders_.size(); ++i)
      if (next_[i] < orders_[i].size()) return false;
    return true;
  }
  int64_t time() const { return *std::max_element(times_.begin(), times_.end()); }

 private:
  bool step(int64_t stage) {
    const auto at = static_cast<size_t>(stage);
    if (next_[at] == orders_[at].size()) return false;
    const Place place{stage, orders_[at][next_[at]]};
    int64_t ready = times_[at];
    if (const auto sender = neighbour(mesh_, place, true)) {
      const auto sent = done_.find(key_of(*sender));
      if (sent == done_.end()) return false;
      ready = std::max(ready, sent->second);
    }
    if (!place.turn.ahead && place.turn.micro_batch > 0 && !is_received(place)) return false;
    times_[at] = done_[key_of(place)] = ready + (place.turn.ahead ? 1 : 2);
    ++next_[at];
    return true;
  }

  // Whether the neighbour has begun with what the chunk's backward before this one sent.
  bool is_received(Place place) const {
    --place.turn.micro_batch;
    const auto receiver = neighbour(mesh_, place, false);
    if (!receiver) return true;
    const auto& order = orders_[static_cast<size_t>(receiver->stage)];
    const auto at = std::find(order.begin(), order.end(), receiver->turn) - order.begin();
    return static_cast<size_t>(at) <= next_[static_cast<size_t>(receiver->stage)];
  }

  RankMesh mesh_;
  std::vector<std::vector<PipelineTurn>> orders_;
  std::vector<size_t> next_;
  std::vector<int64_t> times_;
  std::map<std::tuple<int64_t, bool, int64_t, int64_t>, int64_t> done_;
};

template <class Visit>
void for_each_mesh(Visit&& visit) {
  for (const int64_t stages : {2, 3, 4, 5, 8})
    for (const int64_t chunks : {1, 2, 3, 4})
      for (const int64_t rounds : {1, 2, 3, 5})
        visit(RankMesh{.ranks = stages, .pipeline = stages, .chunks = chunks}, stages * rounds);
}

TEST(PipelineOrder, every_stage_takes_every_micro_batch_through_every_chunk_and_back) {
  for_each_mesh([](const RankMesh& mesh, int64_t micro_batches) {
    for (int64_t stage = 0; stage < mesh.pipeline; ++stage) {
      std::map<std::pair<bool, int64_t>, int64_t> next;
      for (const PipelineTurn& turn : pipeline_order(mesh, stage, micro_batches)) {
        EXPECT_EQ(turn.micro_batch, (next[{turn.ahead, turn.chunk}]++));
        EXPECT_LE((next[{false, turn.chunk}]), (next[{true, turn.chunk}]));
      }
      EXPECT_EQ(next.size(), static_cast<size_t>(2 * mesh.chunks));
      for (const auto& [part, count] : next) EXPECT_EQ(count, micro_batches);
    }
  });
}

// Narayanan et al., 2021, section 2.2: the pipeline fills and empties in the time of p - 1 chunks, a v-th of that of stages.
TEST(PipelineOrder, nobody_waits_for_ever_and_stages_stand_idle_as_long_as_published) {
  for_each_mesh([](const RankMesh& mesh, int64_t micro_batches) {
    const Played played(mesh, micro_batches);
    EXPECT_TRUE(played.all_done()) << mesh.pipeline << " " << mesh.chunks << " " << micro_batches;
    EXPECT_EQ(played.time(), (micro_batches * mesh.chunks + mesh.pipeline - 1) * 3)
        << mesh.pipeline << " " << mesh.chunks << " " << micro_batches;
  });
}

TEST(PipelineOrder, one_chunk_has_as_many_on_their_way_as_stages_behind) {
  const RankMesh mesh{.ranks = 4, .pipeline = 4};
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(pipeline_warm_up(mesh, stage, 8), 3 - stage);
    EXPECT_EQ(pipeline_warm_up(mesh, stage, 2), std::min<int64_t>(2, 3 - stage));
  }
}

}  // namespace
}  // namespace snug
