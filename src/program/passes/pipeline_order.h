#pragma once
// In which order a stage of a pipeline works on micro-batches.

#include <cstdint>
#include <vector>

#include "base/rank_group.h"

namespace snug {

// One forward (`ahead`) or backward of one of the stage's chunks of layers.
struct PipelineTurn {
  bool ahead = true;
  int64_t chunk = 0;
  int64_t micro_batch = 0;

  bool operator==(const PipelineTurn&) const = default;
};

// 1F1B (Narayanan et al., "PipeDream", 2019): as many forwards as there are stages behind this one, then a backward after
// each forward, then the backwards that are left. With several chunks, interleaved as Megatron-LM does it (Narayanan et al.,
// 2021): each chunk takes as many micro-batches as there are stages, then the next one does; micro-batches are a multiple of
// these. More forwards come first: two for each stage behind this one, and a round for each further chunk.
std::vector<PipelineTurn> pipeline_order(const RankMesh& mesh, int64_t stage, int64_t micro_batches);

// The forwards that come first, before a forward and a backward by turns.
int64_t pipeline_warm_up(const RankMesh& mesh, int64_t stage, int64_t micro_batches);

}  // namespace snug
