#include "recipe/foreign_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"

namespace snug {

namespace {

// They steer logging, uploads, loaders and kernels of other programs; the numbers of a training step stay the same.
constexpr auto kHarmless = std::to_array<std::string_view>({
    "attn_implementation",
    "bf16_full_eval",
    "bnb_4bit_quant_storage",
    "cache_dir",
    "dataloader_num_workers",
    "dataloader_persistent_workers",
    "dataloader_pin_memory",
    "dataloader_prefetch_factor",
    "dataset_kwargs",
    "dataset_num_proc",
    "ddp_bucket_cap_mb",
    "ddp_find_unused_parameters",
    "ddp_timeout",
    "disable_tqdm",
    "do_eval",
    "do_predict",
    "do_train",
    "flash_attention",
    "flash_attn",
    "fp16_full_eval",
    "gradient_checkpointing_kwargs",
    "hub_model_id",
    "hub_private_repo",
    "hub_strategy",
    "hub_token",
    "include_num_input_tokens_seen",
    "include_tokens_per_second",
    "log_level",
    "log_on_each_node",
    "logging_first_step",
    "logging_nan_inf_filter",
    "logging_strategy",
    "low_cpu_mem_usage",
    "overwrite_cache",
    "per_device_eval_batch_size",
    "plot_loss",
    "preprocessing_num_workers",
    "push_to_hub",
    "remove_unused_columns",
    "run_name",
    "save_safetensors",
    "skip_memory_metrics",
    "task_type",
    "tf32",
    "torch_compile",
    "torch_empty_cache_steps",
    "trust_remote_code",
    "use_cache",
    "use_liger_kernel",
    "use_reentrant",
    "wandb_entity",
    "wandb_name",
    "wandb_project",
    "wandb_run_id",
    "wandb_watch",
});

struct Refused {
  std::string_view key, reason;
  std::string_view also_off{};  // one more value under which nothing changes
};

constexpr std::string_view kOptimizer = "this optimizer is not supported yet";
constexpr std::string_view kSharding = "training over several devices is not supported yet";
constexpr std::string_view kLora = "this variant of LoRA is not supported yet";
constexpr std::string_view kData = "give files with 'data' and 'eval_data'";

constexpr auto kRefused = std::to_array<Refused>({
    {"quantization_config", "keys of quantization stand alone here"},
    {"fp8", "fp8 is not supported yet"},
    {"lora_bias", kLora},
    {"bias", kLora},
    {"init_lora_weights", kLora, "true"},
    {"pissa_init", kLora},
    {"loftq_config", kLora},
    {"layers_to_transform", kLora},
    {"target_parameters", kLora},
    {"loraplus_lr_ratio", kLora},
    {"label_smoothing_factor", "label smoothing is not supported yet"},
    {"deepspeed", kSharding},
    {"fsdp", kSharding},
    {"fsdp_config", kSharding},
    {"optim_target_modules", kOptimizer},
    {"use_galore", kOptimizer},
    {"use_apollo", kOptimizer},
    {"use_badam", kOptimizer},
    {"use_muon", kOptimizer},
    {"group_by_length", "grouping by length is not supported yet"},
    {"dataloader_drop_last", "every row is used; dropping the last batch is not supported"},
    {"auto_find_batch_size", "snug knows the largest batch beforehand: see `snug fit`"},
    {"activation_offloading", "offloading activations is not supported yet"},
    {"padding_free", "use packing: true, which also trains without padding"},
    {"model_revision", "give a local checkpoint directory instead of a revision", "main"},
    {"revision", "give a local checkpoint directory instead of a revision", "main"},
    {"rope_scaling", "the checkpoint's config.json decides the rotary scaling"},
    {"dataset", kData},
    {"dataset_name", kData},
    {"dataset_mixture", kData},
    {"datasets", kData},
    {"max_samples", kData},
    {"deterministic_sampler", "the order of rows is decided by 'shuffle' and 'seed'"},
    {"streaming", "streamed data sets are not supported: rows are tokenized before the first step"},
});

}  // namespace

bool means_off(std::string_view value) {
  std::string text(value);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr auto kOff =
      std::to_array<std::string_view>({"", "false", "no", "off", "none", "null", "~", "0", "0.0", "0.", "{}", "[]"});
  return std::find(kOff.begin(), kOff.end(), text) != kOff.end();
}

std::span<const std::string_view> harmless_keys() { return kHarmless; }

bool pass_over_foreign_key(std::string_view key, std::span<const std::string> values) {
  if (std::find(kHarmless.begin(), kHarmless.end(), key) != kHarmless.end()) return true;
  const auto* refused = std::find_if(kRefused.begin(), kRefused.end(), [&](const Refused& row) { return row.key == key; });
  if (refused == kRefused.end()) return false;
  const bool off =
      values.empty() ||
      (values.size() == 1 && (means_off(values[0]) || (!refused->also_off.empty() && values[0] == refused->also_off)));
  if (!off) throw Error(fmt::format("{}: {}", key, refused->reason));
  return true;
}

}  // namespace snug
