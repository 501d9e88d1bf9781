#include "ask/pytorch_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "ask/deepspeed_config.h"
#include "ask/pytorch_setup.h"
#include "base/error.h"
#include "recipe/dialects/reading.h"

namespace snug {

namespace {

[[noreturn]] void refuse(const std::string& what) { throw Error(what, "", "run the trainer under snug measure"); }

snug::Sharding sharding_asked(const Arguments& arguments) {
  const int ways = static_cast<int>(arguments.has("fsdp")) + static_cast<int>(arguments.has("ddp")) +
                   static_cast<int>(arguments.has("deepspeed"));
  if (ways > 1) throw UsageError("--fsdp, --ddp and --deepspeed are three ways to share a run: one of them");
  if (arguments.has("fsdp")) return snug::Sharding::fsdp;
  if (ways > 0 || !arguments.foreign) return snug::Sharding::none;
  return arguments.foreign->sharding;
}

// That of the flag, or of the recipe where it lies beside it or here.
std::optional<DeepSpeedConfig> deepspeed_config(const Arguments& arguments) {
  namespace fs = std::filesystem;
  if (arguments.has("deepspeed")) return read_deepspeed_config(arguments.value("deepspeed"));
  if (!arguments.foreign || arguments.has("fsdp") || arguments.has("ddp")) return std::nullopt;
  for (const ForeignKey& key : arguments.foreign->keys) {
    if (key.name != "deepspeed" || !key.value.ends_with(".json")) continue;
    for (const fs::path& path : {fs::path(key.value), fs::path(arguments.recipe_file).parent_path() / key.value})
      if (std::error_code failed; fs::is_regular_file(path, failed)) return read_deepspeed_config(path.string());
  }
  return std::nullopt;
}

// What configurations leave to transformers (integrations/deepspeed.py, fill_match); where only a stage is named, that too.
DeepSpeedConfig usual_config(snug::Sharding named) {
  DeepSpeedConfig config;
  config.stage = static_cast<int64_t>(named);  // zero1 is the first after none
  if (config.stage == 3) config.bucket.is_auto = config.prefetch.is_auto = config.persistent.is_auto = true;
  return config;
}

eager::Ranks deepspeed_ranks(const DeepSpeedConfig& config, const ModelSpec& model) {
  if (config.stage == 0) refuse("DeepSpeed without a stage is not modelled yet");
  if (config.offloads) refuse("DeepSpeed's offload is not modelled yet");
  if (!config.contiguous) refuse("DeepSpeed without contiguous_gradients is not modelled yet");
  constexpr std::array kStages = {eager::Sharding::zero1, eager::Sharding::zero2, eager::Sharding::zero3};
  eager::Ranks ranks;
  ranks.sharding = kStages[static_cast<size_t>(config.stage - 1)];
  const int64_t square = model.hidden_size * model.hidden_size;
  const auto fill = [](int64_t& into, const DeepSpeedSize& size, int64_t filled_in) {
    if (size.is_auto) into = filled_in;
    if (size.elements) into = *size.elements;
  };
  fill(ranks.bucket_elements, config.bucket, square);
  fill(ranks.prefetch_elements, config.prefetch, square * 9 / 10);
  fill(ranks.persistent_elements, config.persistent, 10 * model.hidden_size);
  fill(ranks.most_live, config.most_live, ranks.most_live);
  fill(ranks.reuse_distance, config.reuse, ranks.reuse_distance);
  fill(ranks.sub_group, config.sub_group, ranks.sub_group);
  ranks.overlaps = config.overlaps && config.stage < 3;
  ranks.loads_in_parts = config.stage == 3;
  ranks.own_adam = config.own_adam.value_or(false);
  return ranks;
}

// FSDP 2 where the file says so, and since transformers 5 where it does not.
eager::Ranks fsdp_ranks(const Arguments& arguments, const eager::Setup& setup, const eager::StackProfile& stack) {
  const FsdpWords words = arguments.foreign ? arguments.foreign->fsdp : FsdpWords{};
  const bool is_new = eager::version_number(stack.transformers) >= eager::version_number("5.0");
  const bool first = words.version == 1 || (words.version == 0 && !is_new);
  if (!first && !is_new) refuse("FSDP 2 before transformers 5 is not modelled yet");
  eager::Ranks ranks;
  ranks.sharding = first ? eager::Sharding::fsdp1 : eager::Sharding::fsdp2;
  ranks.reshards_after_forward = !words.keeps_gathered;
  if (!first) return ranks;
  if (!words.other.empty()) refuse("FSDP 1 with " + words.other + " is not modelled yet");
  // peft's fsdp_auto_wrap_policy wraps blocks all the same, as transformers 5 does
  if (!words.wraps_blocks && !is_new && setup.method == eager::Method::full)
    refuse("FSDP 1 without auto_wrap is not modelled yet");
  // Trainer hands the strategy on as reshard_after_forward, which accelerate 1.15 does not ask after the default of
  // sharding_strategy (utils/dataclasses.py)
  const bool of_trainer = arguments.foreign && (arguments.foreign->dialect == Dialect::hugging_face ||
                                                arguments.foreign->dialect == Dialect::trl);
  if (is_new && of_trainer) ranks.reshards_after_forward = true;
  ranks.keeps_parameters = !words.flattens;
  ranks.gathers_ahead = words.gathers_ahead;
  return ranks;
}

// trainer.py _build_accelerator_args; LLaMA-Factory switches it off for LoRA (hparams/parser.py).
bool finds_unused(const Arguments& arguments, const eager::Setup& setup) {
  if (!arguments.foreign) return eager::finds_unused(setup);
  for (const ForeignKey& key : arguments.foreign->keys)
    if (key.name.ends_with("ddp_find_unused_parameters")) return is_on(key);
  const bool lora = setup.method == eager::Method::lora;
  return !(lora && arguments.foreign->dialect == Dialect::llama_factory) && eager::finds_unused(setup);
}

}  // namespace

int64_t gpus_asked(const Arguments& arguments) {
  constexpr int64_t kMostGpus = 100'000;
  if (!arguments.has("gpus")) return arguments.foreign ? std::min(arguments.foreign->gpus, kMostGpus) : 0;
  const std::string word = arguments.value("gpus");
  const int64_t count = dialects::count_of(word);
  if (count < 1 || count > kMostGpus)
    throw UsageError("--gpus is a number of GPUs, not '" + word + "' (their kind is --gpu)");
  return count;
}

void assume_gpus(Arguments& arguments) {
  constexpr int64_t kOfAMachine = 8;
  if (!arguments.foreign || !arguments.has("gpu") || sets(arguments, "num_processes") || gpus_asked(arguments) > 0) return;
  const snug::Sharding sharding = sharding_asked(arguments);
  const bool zero = sharding != snug::Sharding::fsdp && (sharding != snug::Sharding::none || deepspeed_config(arguments));
  if (!zero && sharding == snug::Sharding::none) return;
  arguments.foreign->gpus = kOfAMachine;
  arguments.foreign->notes.push_back(fmt::format("how many GPUs share the run by {} is not said: {} are taken (--gpus N)",
                                                 zero ? "DeepSpeed" : "FSDP", kOfAMachine));
}

bool is_about_ranks(const ForeignKey& key) {
  constexpr std::array kRankKeys = {"fsdp", "fsdp_config", "fsdp_version", "deepspeed", "ddp_find_unused_parameters"};
  return std::find(kRankKeys.begin(), kRankKeys.end(), key.name) != kRankKeys.end();
}

eager::Ranks pytorch_ranks(const Arguments& arguments, const eager::Setup& setup, const ModelSpec& model,
                           const eager::StackProfile& stack) {
  const int64_t count = gpus_asked(arguments);
  const snug::Sharding sharding = sharding_asked(arguments);
  const auto config = deepspeed_config(arguments);
  const bool zero = config || (sharding != snug::Sharding::none && sharding != snug::Sharding::fsdp);
  if (arguments.foreign && arguments.foreign->offloads) refuse("offload to the host is not modelled yet");
  if (zero && count == 0) throw Error("how many GPUs share the run by DeepSpeed is not said", "deepspeed", "--gpus 4");
  eager::Ranks ranks = zero ? deepspeed_ranks(config ? *config : usual_config(sharding), model) : eager::Ranks{};
  if (sharding == snug::Sharding::fsdp && count == 0)
    throw Error("how many GPUs share the run by FSDP is not said", "fsdp", "--gpus 4");
  if (count <= 1 && !zero) return {};
  ranks.count = count;
  if (zero) return ranks;
  if (sharding == snug::Sharding::fsdp) {
    ranks = fsdp_ranks(arguments, setup, stack);
    ranks.count = count;
    return ranks;
  }
  ranks.sharding = eager::Sharding::ddp;
  ranks.finds_unused = finds_unused(arguments, setup);
  return ranks;
}

std::optional<bool> deepspeed_fuses_adam(const Arguments& arguments) {
  const auto config = deepspeed_config(arguments);
  return config ? config->own_adam : std::nullopt;
}

Parallel shared_by(const Arguments& arguments) {
  Parallel parallel = arguments.recipe.parallel;
  const snug::Sharding sharding = sharding_asked(arguments);
  const std::optional<DeepSpeedConfig> config = deepspeed_config(arguments);
  if (!sets(arguments, "num_processes") && gpus_asked(arguments) > 0) parallel.ranks = gpus_asked(arguments);
  if (sets(arguments, "zero_stage")) return parallel;
  if (config) {
    parallel.zero_stage = config->stage;
    parallel.overlaps = config->overlaps;
  } else if (sharding == snug::Sharding::fsdp) {
    parallel.zero_stage = 3;
  } else if (sharding != snug::Sharding::none) {
    parallel.zero_stage = usual_config(sharding).stage;
  }
  return parallel;
}

}  // namespace snug
