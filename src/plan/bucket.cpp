#include "plan/bucket.h"

#include "plan/workspaces.h"
#include "program/compile.h"

namespace snug {

namespace {

// Every storage that lives throughout the run is there, under the same number, and has room where the plan put it.
bool same_run_storages(const Program& shorter, const Plan& plan) {
  const std::vector<Storage>& ours = shorter.storages;
  const std::vector<Storage>& theirs = plan.program.storages;
  for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const bool here = i < ours.size() && ours[i].lifetime == Lifetime::run;
    const bool there = i < theirs.size() && theirs[i].lifetime == Lifetime::run;
    if (here != there) return false;
    if (here && (ours[i].name != theirs[i].name || ours[i].bytes > theirs[i].bytes)) return false;
  }
  return true;
}

}  // namespace

std::optional<BucketProgram> plan_bucket(const Plan& plan, int64_t seq_len) {
  // Rows that the ranks of a micro-batch cannot split.
  const RankMesh& mesh = plan.program.mesh;
  if (seq_len % mesh.context != 0 || plan.recipe.batch * (seq_len / mesh.context) % mesh.tensor != 0) return std::nullopt;
  Recipe recipe = plan.recipe;
  recipe.seq_len = seq_len;
  BucketProgram bucket{.program = compile(plan.model, recipe, plan.recipe.checkpoint_to_budget ? &plan.saved : nullptr)};
  fit_to_target(bucket.program, plan.target);
  if (!same_run_storages(bucket.program, plan)) return std::nullopt;
  bucket.layout = lay_out_within(bucket.program, plan.layout);
  for (size_t home = 0; home < kHomeCount; ++home)
    if (bucket.layout.homes[home].bytes > plan.layout.homes[home].bytes) return std::nullopt;
  return bucket;
}

}  // namespace snug
