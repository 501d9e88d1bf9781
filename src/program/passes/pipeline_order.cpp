#include "program/passes/pipeline_order.h"

#include <algorithm>

namespace snug {

int64_t pipeline_warm_up(const RankMesh& mesh, int64_t stage, int64_t micro_batches) {
  const int64_t behind = mesh.pipeline - 1 - stage;
  const int64_t wanted = mesh.chunks == 1 ? behind : 2 * behind + (mesh.chunks - 1) * mesh.pipeline;
  return std::min(wanted, micro_batches * mesh.chunks);
}

std::vector<PipelineTurn> pipeline_order(const RankMesh& mesh, int64_t stage, int64_t micro_batches) {
  const int64_t round = mesh.chunks == 1 ? 1 : mesh.pipeline;  // micro-batches that a chunk takes one after the other
  const auto turn = [&](bool ahead, int64_t number) {
    const int64_t in_round = number % (round * mesh.chunks), chunk = in_round / round;
    return PipelineTurn{.ahead = ahead,
                        .chunk = ahead ? chunk : mesh.chunks - 1 - chunk,
                        .micro_batch = number / (round * mesh.chunks) * round + in_round % round};
  };
  const int64_t all = micro_batches * mesh.chunks, warm = pipeline_warm_up(mesh, stage, micro_batches);
  std::vector<PipelineTurn> order;
  order.reserve(static_cast<size_t>(2 * all));
  for (int64_t i = 0; i < warm; ++i) order.push_back(turn(true, i));
  for (int64_t i = warm; i < all; ++i) {
    order.push_back(turn(true, i));
    order.push_back(turn(false, i - warm));
  }
  for (int64_t i = all - warm; i < all; ++i) order.push_back(turn(false, i));
  return order;
}

}  // namespace snug
