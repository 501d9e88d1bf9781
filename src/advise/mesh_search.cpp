#include "advise/mesh_search.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/ranks.h"
#include "program/compile.h"
#include "recipe/keys.h"

namespace snug {

namespace {

constexpr size_t kShown = 5;
constexpr int64_t kMostChunks = 4;       // of a stage
constexpr int64_t kLeastStretch = 1024;  // tokens of a sequence that are worth a rank of their own

class MeshSearch {
 public:
  MeshSearch(const ModelSpec& model, const Recipe& recipe, const Target& target, const std::vector<std::string>& fixed)
      : model_(model),
        asked_(recipe),
        target_(target),
        fixed_(fixed),
        budget_(budget_of(recipe, target)),
        ranks_(recipe.parallel.ranks),
        seq_len_(sequence_length(model, recipe)) {}

  MeshAnswer run() {
    const auto from = std::chrono::steady_clock::now();
    answer_.step_rows = checked_mul(checked_mul(asked_.batch, asked_.accumulation), ranks_);
    for (const int64_t tensor : ways("tp_size", asked_.parallel.tensor, most_tensor()))
      for (const int64_t context : ways("cp_size", asked_.parallel.context, most_context()))
        for (const int64_t pipeline : ways("pp_size", asked_.parallel.pipeline, model_.layers))
          for (const int64_t expert : ways("ep_size", asked_.parallel.expert, std::max<int64_t>(1, model_.experts.count)))
            try_mesh(tensor, context, pipeline, expert);
    plan_fastest();
    answer_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
    return std::move(answer_);
  }

 private:
  bool is_fixed(std::string_view key) const { return std::find(fixed_.begin(), fixed_.end(), key) != fixed_.end(); }

  // Powers of two that divide the ranks, or the one that was asked for.
  std::vector<int64_t> ways(std::string_view key, int64_t asked, int64_t most) const {
    if (is_fixed(key)) return {asked};
    std::vector<int64_t> all;
    for (int64_t size = 1; size <= std::min(most, ranks_); size *= 2)
      if (ranks_ % size == 0) all.push_back(size);
    return all;
  }

  // Products are summed many times a layer: within a node.
  int64_t most_tensor() const { return target_.cost.ranks_per_node > 0 ? target_.cost.ranks_per_node : ranks_; }
  int64_t most_context() const { return asked_.batch == 1 ? std::max<int64_t>(1, seq_len_ / kLeastStretch) : 1; }

  void try_mesh(int64_t tensor, int64_t context, int64_t pipeline, int64_t expert) {
    Recipe recipe = asked_;
    Parallel& parallel = recipe.parallel;
    parallel.tensor = tensor;
    parallel.context = context;
    parallel.pipeline = pipeline;
    parallel.expert = expert;
    const int64_t together = tensor * context * pipeline;
    if (ranks_ % together != 0) return;
    recipe.accumulation = checked_mul(asked_.accumulation, together);
    for (const ContextComm comm : ways_of_keys(context)) {
      parallel.context_comm = comm;
      try_stages(recipe);
    }
  }

  // How keys and values get to the ranks that split sequences.
  std::vector<ContextComm> ways_of_keys(int64_t context) const {
    if (context == 1 || is_fixed("cp_comm_type")) return {asked_.parallel.context_comm};
    return {ContextComm::all_gather, ContextComm::p2p};
  }

  void try_stages(Recipe& recipe) {
    Parallel& parallel = recipe.parallel;
    const int64_t data = ranks_ / parallel.tensor / parallel.pipeline;
    for (int64_t stage = is_fixed("zero_stage") ? asked_.parallel.zero_stage : 0; stage <= 3; ++stage) {
      parallel.zero_stage = stage;
      for (const int64_t replicas : copies(stage, data)) {
        parallel.replicas = replicas;
        try_checkpointing(recipe);
      }
      if (is_fixed("zero_stage") || data == 1) break;
    }
  }

  // One, or each within a node.
  std::vector<int64_t> copies(int64_t stage, int64_t data) const {
    if (is_fixed("dp_replicate_size")) return {asked_.parallel.replicas};
    const int64_t node = target_.cost.ranks_per_node;
    if (stage == 0 || node == 0 || data <= node || data % node != 0) return {1};
    return {1, data / node};
  }

  void try_checkpointing(Recipe& recipe) {
    if (is_fixed("gradient_checkpointing")) return estimate_mesh(recipe);
    for (const bool recomputes : {false, true}) {
      recipe.gradient_checkpointing = recomputes;
      estimate_mesh(recipe);
    }
  }

  // Weights, gradients and states alone.
  int64_t least_bytes(const Recipe& recipe) const {
    if (recipe.method != Method::full) return 0;
    const RankMesh mesh = recipe.parallel.mesh();
    const auto share = [&](int64_t from) { return recipe.parallel.zero_stage >= from ? mesh.parts : 1; };
    const bool half = recipe.bf16 || recipe.fp16;
    const int64_t own = total_parameters(model_) / (mesh.tensor * mesh.pipeline * mesh.expert);
    return own * (half ? 2 : 4) / share(3) + own * 4 / share(2);
  }

  void estimate_mesh(const Recipe& recipe) {
    ++answer_.tried;
    if (least_bytes(recipe) > budget_) return;
    try {
      validate(recipe);
      const Estimate estimated = estimate(model_, recipe, target_);
      MeshChoice choice{recipe, estimated.peak_bytes, estimated.step_time.seconds};
      if (choice.peak_bytes <= budget_) {
        found_.push_back(std::move(choice));
        interleave(recipe);
      } else if (!answer_.least || choice.peak_bytes < answer_.least->peak_bytes) {
        answer_.least = std::move(choice);
      }
    } catch (const Error& error) {
      refusal_ = error;  // of heads that it does not divide, say
    }
  }

  // Stages that wait for long get several chunks of layers each.
  void interleave(Recipe recipe) {
    constexpr double kLong = 0.05;
    Parallel& parallel = recipe.parallel;
    const int64_t stages = parallel.pipeline;
    const bool waits = static_cast<double>(stages - 1) > kLong * static_cast<double>(recipe.accumulation);
    if (is_fixed("vpp_size") || parallel.chunks > 1 || !waits || recipe.accumulation % stages != 0) return;
    for (parallel.chunks = 2; parallel.chunks <= kMostChunks && parallel.chunks * stages <= model_.layers;
         parallel.chunks *= 2)
      estimate_mesh(recipe);
  }

  void plan_fastest() {
    const auto faster = [](const MeshChoice& a, const MeshChoice& b) { return a.step_seconds < b.step_seconds; };
    std::stable_sort(found_.begin(), found_.end(), faster);
    for (MeshChoice& choice : found_) {
      if (answer_.fastest.size() == kShown) break;
      const Plan plan = make_plan(model_, choice.recipe, target_);
      if (!plan.fits()) continue;
      choice.peak_bytes = plan.peak_bytes;
      choice.step_seconds = plan.step_time.seconds;
      const RankMesh& mesh = plan.program.mesh;
      choice.sent_bytes = sent_to_ranks(plan.program, plan.program.stage * mesh.of_stage());
      answer_.fastest.push_back(std::move(choice));
    }
    std::stable_sort(answer_.fastest.begin(), answer_.fastest.end(), faster);
    if (answer_.fastest.empty() && !answer_.least && refusal_) throw Error(*refusal_);
  }

  const ModelSpec& model_;
  const Recipe& asked_;
  const Target& target_;
  const std::vector<std::string>& fixed_;
  int64_t budget_, ranks_, seq_len_;
  std::vector<MeshChoice> found_;
  std::optional<Error> refusal_;
  MeshAnswer answer_;
};

}  // namespace

MeshAnswer search_meshes(const ModelSpec& model, const Recipe& recipe, const Target& target,
                         const std::vector<std::string>& fixed) {
  return MeshSearch(model, recipe, target, fixed).run();
}

}  // namespace snug
