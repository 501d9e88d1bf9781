#pragma once
// The ranks of a run as a mesh. From the innermost dimension on: ranks that split each layer's products (tensor), that split
// each sequence (context), that have batches of their own (data). What is shared out (ZeRO) is cut among ranks of the last
// two, into as many parts as a replica has; experts are split among neighbours of these. Outermost: ranks that have other
// layers (pipeline). Ranks that say most to each other follow one another, so that they lie on one machine where machines
// are filled in order.

#include <cstdint>

namespace snug {

// Who takes part in a collective.
enum class RankGroup : uint8_t {
  all,
  shard,         // those of one replica, which hold a part each: of what all of them train alike …
  slice_shard,   // … of slices that those who split products have
  replica,       // those of all replicas that hold the same part
  tensor,        // those that split the same products
  context,       // those that split the same sequences
  batch,         // those that work on the same micro-batch
  data,          // those that have the same share of products, so that all they train is the same
  expert,        // those that split experts
  expert_data,   // those that have the same experts
  expert_shard,  // … of a replica, which hold a part each
  stage,         // those that have the same layers
  pipeline,      // those that together have all of them
  ahead,         // … as what is handed on goes from stage to stage …
  back,          // … and its gradients come back
  ends,          // the first and the last of these: a tied embedding is in both stages
};
constexpr int kRankGroupCount = 16;
constexpr RankGroup kRankGroups[kRankGroupCount] = {
    RankGroup::all,      RankGroup::shard,       RankGroup::slice_shard,  RankGroup::replica,
    RankGroup::tensor,   RankGroup::context,     RankGroup::batch,        RankGroup::data,
    RankGroup::expert,   RankGroup::expert_data, RankGroup::expert_shard, RankGroup::stage,
    RankGroup::pipeline, RankGroup::ahead,       RankGroup::back,         RankGroup::ends};

struct RankMesh {
  int64_t ranks = 1;
  int64_t parts = 1;  // of a slice, in a replica
  int64_t tensor = 1;
  int64_t context = 1;
  int64_t expert = 1;    // of the ranks that split sequences or have batches of their own
  int64_t pipeline = 1;  // stages …
  int64_t chunks = 1;    // … which have so many chunks of layers each, in turn

  bool operator==(const RankMesh&) const = default;

  int64_t size(RankGroup group) const { return line(group).count; }
  // The place of a rank in its group.
  int64_t index(RankGroup group, int64_t rank) const {
    const int64_t place = rank / line(group).stride % line(group).count;
    return group == RankGroup::back ? pipeline - 1 - place : place;
  }
  // The rank that has a place in the group of `rank`.
  int64_t member(RankGroup group, int64_t rank, int64_t place) const {
    const int64_t steps = place - index(group, rank);
    return rank + (group == RankGroup::back ? -steps : steps) * line(group).stride;
  }
  int64_t next(RankGroup group, int64_t rank) const { return member(group, rank, (index(group, rank) + 1) % size(group)); }
  int64_t previous(RankGroup group, int64_t rank) const {
    return member(group, rank, (index(group, rank) + size(group) - 1) % size(group));
  }

  // Ranks from the first to the last that a byte passes in a group: on its way to a neighbour, or round the ring.
  int64_t reach(RankGroup group, bool to_neighbour) const {
    const auto [stride, count] = line(group);
    return count > 1 ? stride * (to_neighbour ? 1 : count - 1) + 1 : 1;
  }

  // Micro-batches that are worked on at a time, and which of them is this rank's.
  int64_t batches() const { return of_stage() / size(RankGroup::batch); }
  int64_t batch_of(int64_t rank) const { return rank % of_stage() / size(RankGroup::batch); }

  // The first group with the same ranks, which need one ring. What goes along stages does so at any time, by itself.
  RankGroup ring_of(RankGroup group) const {
    if (group == RankGroup::ahead || group == RankGroup::back) return group;
    for (const RankGroup other : kRankGroups)
      if (line(other) == line(group)) return other;
    return group;
  }
  int64_t of_stage() const { return ranks / pipeline; }
  int64_t stage_of(int64_t rank) const { return rank / of_stage(); }

  bool has_ring(RankGroup group) const { return ring_of(group) == group && (group == RankGroup::all || size(group) > 1); }
  bool is_in(RankGroup group, int64_t rank) const {
    return group != RankGroup::ends || stage_of(rank) == 0 || stage_of(rank) == pipeline - 1;
  }

 private:
  // A group: so many ranks, so far from each other.
  struct Line {
    int64_t stride, count;
    bool operator==(const Line&) const = default;
  };
  Line line(RankGroup group) const {
    switch (group) {
      case RankGroup::shard: return {1, tensor * parts};
      case RankGroup::slice_shard: return {tensor, parts};
      case RankGroup::replica: return {tensor * parts, of_stage() / tensor / parts};
      case RankGroup::tensor: return {1, tensor};
      case RankGroup::context: return {tensor, context};
      case RankGroup::batch: return {1, tensor * context};
      case RankGroup::data: return {tensor, of_stage() / tensor};
      case RankGroup::expert: return {tensor, expert};
      case RankGroup::expert_data: return {tensor * expert, of_stage() / tensor / expert};
      case RankGroup::expert_shard: return {tensor * expert, parts > expert ? parts / expert : 1};
      case RankGroup::stage: return {1, of_stage()};
      case RankGroup::pipeline:
      case RankGroup::ahead:
      case RankGroup::back: return {of_stage(), pipeline};
      case RankGroup::ends: return pipeline > 1 ? Line{of_stage() * (pipeline - 1), 2} : Line{1, 1};
      default: return {1, ranks};
    }
  }
};

}  // namespace snug
