#include "recipe/parallel_keys.h"

#include "recipe/key_makers.h"

namespace snug {

namespace {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

constexpr int64_t kMostRanks = int64_t{1} << 20;

[[noreturn]] void refuse(std::string_view key, std::string_view with, const std::string& why, const std::string& mend) {
  throw Error(fmt::format("{} does not go with {}: {}", key, with, why), "", mend);
}

}  // namespace

std::vector<Key> parallel_keys() {
  return {
      integer(
          "num_processes", {"nproc_per_node", "world_size"},
          "Processes that train together, each with its share of every batch; a launcher's own count wins.",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.ranks; }),
      integer(
          "zero_stage", {},
          "What each process holds a part of: 0 nothing (DDP), 1 optimizer states, 2 and gradients, 3 and weights (FSDP).",
          {0, 3, "0|1|2|3"}, [](auto& r) -> auto& { return r.parallel.zero_stage; }),
      integer(
          "dp_replicate_size", {},
          "With zero_stage: copies of what is shared out, each cut among so many fewer processes (hybrid sharding).",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.replicas; }),
      boolean(
          "overlap_comm", {},
          "With zero_stage 2 or 3: a layer's weights come, and its gradients go, while another is worked on.",
          [](auto& r) -> auto& { return r.parallel.overlaps; }),
  };
}

void validate_parallel(const Recipe& recipe) {
  const Parallel& parallel = recipe.parallel;
  if (parallel.replicas > 1 && parallel.zero_stage == 0)
    throw Error("dp_replicate_size has no effect with zero_stage: 0, where every process has everything", "",
                "remove it, or set zero_stage");
  if (parallel.ranks % parallel.replicas != 0)
    throw Error(
        fmt::format("num_processes {} cannot be cut into dp_replicate_size {} copies", parallel.ranks, parallel.replicas),
        "", "give a divisor of it");
  if (parallel.ranks == 1) return;
  if (recipe.offload_gradients)
    refuse("num_processes", "offload_gradients: disk", "gradients are summed over processes in memory",
           "remove one of them");
  if (recipe.optimizer_in_bwd)
    refuse("num_processes", "optimizer_in_bwd", "weights are updated before gradients are summed over processes",
           "remove one of them");
  if (recipe.parallel.zero_stage == 0) return;
  if (recipe.optim == Optimizer::adafactor)
    refuse("zero_stage", "optim: adafactor", "it needs whole matrices", "use another optim, or zero_stage: 0");
  if (states_lie_far(recipe))
    refuse("zero_stage", "states on disk", "each process holds a part of them in memory",
           "remove offload_optimizer and paged_, or set zero_stage: 0");
  if (recipe.offload_weights)
    refuse("zero_stage", "offload_weights: disk", "weights lie on disk or with other processes", "remove one of them");
  if (recipe.parallel.zero_stage == 3 && recipe.lora.use_dora)
    refuse("zero_stage: 3", "use_dora", "lengths of rows are measured on whole matrices", "set zero_stage: 2");
}

}  // namespace snug
