// Pipeline parallelism, one stage's order of micro-batches (pipeline_order.h). Several are on their way at once; each has
// instances of its own of what its backward reads.

#include <algorithm>
#include <optional>

#include "program/passes/interleave.h"
#include "program/passes/list.h"
#include "program/passes/pipeline_order.h"
#include "program/passes/pipeline_parts.h"

namespace snug {

namespace {

void add_loops(Program& program, Region& all, ChunkParts parts) {
  Region &ahead = parts.ahead.front(), &back = parts.back.front();
  const int64_t warm = pipeline_warm_up(program.mesh, program.stage, program.micro_batches);
  const int64_t slots = std::min(program.mesh.pipeline - program.stage, program.micro_batches);
  StorageSet kept = touched(program, ahead, true);
  const StorageSet read = touched(program, back, false);
  std::erase_if(kept, [&](StorageId id) { return !read.contains(id); });
  if (slots > 1)
    for (const StorageId id : kept) keep_apart(program, id, slots);

  const int64_t steady = program.micro_batches - warm;
  std::vector<Region> loops;
  if (warm > 0) loops.push_back(loop_of("warm_up", Section::warm_up, warm, {steady > 0 ? copy_of(program, ahead) : ahead}));
  std::optional<Region> late;
  if (warm > 0) late = steady > 0 ? copy_of(program, back) : back;
  if (steady > 0) loops.push_back(loop_of("steady", Section::steady, steady, {std::move(ahead), std::move(back)}));
  if (warm > 0) loops.push_back(loop_of("cool_down", Section::cool_down, warm, {std::move(*late)}));
  for (Region& loop : loops) all.add(std::move(loop));
}

}  // namespace

void passes::pipeline(Program& program, const StepRequest& /*request*/) {
  if (program.mesh.pipeline == 1) return;
  Region& all = program.region(Section::micro_batch);
  ChunkParts parts = take_apart(program, all);
  if (program.mesh.chunks == 1) return add_loops(program, all, std::move(parts));
  interleave(program, all, std::move(parts));
}

}  // namespace snug
