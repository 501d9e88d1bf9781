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
      integer(
          "tp_size", {"tensor_parallel_size", "tensor_model_parallel_size"},
          "Processes that split the products of every layer among them, and the rows between these (sequence parallelism).",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.tensor; }),
      integer(
          "cp_size", {"context_parallel_size", "parallelism_config_cp_size"},
          "Processes that split every sequence among them: each has its stretch of the rows, and gathers keys and values.",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.context; }),
      choice<ContextComm>(
          "cp_comm_type", {"cp_comm_strategy", "parallelism_config_cp_comm_strategy"},
          "With cp_size: keys and values of all are gathered for each layer, or go round in a ring, block by block (p2p).",
          "all_gather|p2p",
          {{"all_gather", ContextComm::all_gather, {}},
           {"allgather", ContextComm::all_gather, {}},
           {"p2p", ContextComm::p2p, {}},
           {"alltoall", ContextComm::p2p, {}},  // accelerate's word for blocks that go round
           {"a2a", {}, "sequences are split, not heads: tp_size splits those"},
           {"a2a+p2p", {}, "sequences are split, not heads: tp_size splits those"}},
          [](auto& r) -> auto& { return r.parallel.context_comm; }),
      integer(
          "ep_size", {"expert_parallel_size", "expert_model_parallel_size"},
          "Processes that split the experts of every layer among them: each takes the tokens of all for its own.",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.expert; }),
      integer(
          "pp_size", {"pipeline_parallel_size", "pipeline_model_parallel_size"},
          "Stages that have some of the layers each, and hand on what these make (1F1B); processes are split among them.",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.pipeline; }),
      integer(
          "vpp_size", {"virtual_pipeline_parallel_size", "virtual_pipeline_model_parallel_size"},
          "Chunks of layers that each stage has, in turn with the others (interleaved 1F1B): stages wait less, say more.",
          {1, kMostRanks, "at least 1"}, [](auto& r) -> auto& { return r.parallel.chunks; }),
      boolean(
          "overlap_comm", {},
          "With zero_stage 2 or 3: a layer's weights come, and its gradients go, while another is worked on.",
          [](auto& r) -> auto& { return r.parallel.overlaps; }),
  };
}

// What is made of whole weights or whole rows.
void validate_split_products(const Recipe& recipe) {
  const auto refuse_with = [&](const char* what, const char* why, const char* mend) { refuse("tp_size", what, why, mend); };
  const char* const whole = "it needs whole matrices";
  if (recipe.optim == Optimizer::adafactor) refuse_with("optim: adafactor", whole, "use another optim, or cp_size");
  if (recipe.optim == Optimizer::adamw_8bit || recipe.optim == Optimizer::lion_8bit)
    refuse_with("8-bit states", "their blocks lie across what each process has of a matrix",
                "use another optim, or zero_stage");
  if (recipe.lora.use_dora) refuse_with("use_dora", whole, "set it to false, or use cp_size");
  if (recipe.tiled_mlp) refuse_with("tiled_mlp", "rows are gathered for all of an MLP", "remove one of them");
}

// What looks at all layers, or at one micro-batch after the other.
void validate_stages(const Recipe& recipe) {
  const auto refuse_with = [&](const char* what, const char* why) { refuse("pp_size", what, why, "remove one of them"); };
  const char* const several = "several micro-batches are on their way at a time";
  if (!recipe.lora.modules_to_save.empty()) refuse_with("modules_to_save", "only one stage has them");
  const std::vector<std::string>& targets = recipe.lora.target_modules;
  if (std::find(targets.begin(), targets.end(), "lm_head") != targets.end())
    refuse_with("an adapter on lm_head", "only one stage has it");
  if (recipe.checkpoint_inputs > 0) refuse_with("gradient_checkpointing_inputs", several);
  if (recipe.offload_activations) refuse_with("offload_activations", several);
  if (recipe.offload_weights || states_lie_far(recipe)) refuse_with("what lies on disk", several);
  const int64_t stages = recipe.parallel.pipeline, over = recipe.accumulation % stages;
  if (recipe.parallel.chunks > 1 && over != 0)
    throw Error(fmt::format("vpp_size needs as many micro-batches as {} stages take in turn, and {} are no multiple of that",
                            stages, recipe.accumulation),
                "", fmt::format("set gradient_accumulation_steps: {}", recipe.accumulation - over + stages));
}

void validate_parallel(const Recipe& recipe) {
  const Parallel& parallel = recipe.parallel;
  if (parallel.replicas > 1 && parallel.zero_stage == 0)
    throw Error("dp_replicate_size has no effect with zero_stage: 0, where every process has everything", "",
                "remove it, or set zero_stage");
  const auto divides = [&](std::string_view key, int64_t size, std::string_view what) {
    if (parallel.ranks % size != 0)
      throw Error(fmt::format("num_processes {} cannot be cut into {} {} {}", parallel.ranks, key, size, what), "",
                  "give a divisor of it");
  };
  divides("dp_replicate_size", parallel.replicas, "copies");
  divides("pp_size", parallel.pipeline, "stages");
  divides("tp_size", parallel.tensor, "shares");
  divides("cp_size", parallel.context, "shares");
  divides("ep_size", parallel.expert, "shares");
  const int64_t split = checked_mul(parallel.pipeline, parallel.tensor);
  divides("pp_size times tp_size", split, "shares");
  divides("pp_size times tp_size times cp_size", checked_mul(split, parallel.context), "shares");
  divides("pp_size times tp_size times dp_replicate_size", checked_mul(split, parallel.replicas), "shares");
  divides("pp_size times tp_size times dp_replicate_size times ep_size",
          checked_mul(checked_mul(split, parallel.replicas), parallel.expert), "shares");
  if (parallel.chunks > 1 && parallel.pipeline == 1)
    throw Error("vpp_size has no effect without pp_size: stages are what has several chunks", "",
                "remove it, or set pp_size");
  if (parallel.ranks == 1) return;
  if (parallel.context > 1 && recipe.batch > 1)
    refuse("cp_size", "per_device_train_batch_size above 1", "each micro-batch is one sequence that processes split",
           "set it to 1, and gradient_accumulation_steps to as many");
  if (parallel.tensor > 1) validate_split_products(recipe);
  if (parallel.pipeline > 1) validate_stages(recipe);
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
