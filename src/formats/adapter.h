#pragma once
// LoRA adapters in the format of PEFT: `adapter_config.json` and the names of tensors in `adapter_model.safetensors`
// (huggingface/peft, tuners/lora/config.py, utils/save_and_load.py). Knows names and numbers, not weights.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path_pattern.h"

namespace snug {

// What an adapter is read for. Training needs to go on computing as it did; merging needs to compute it once.
enum class AdapterUse : uint8_t { train, merge };

struct AdapterConfig {
  std::string base_model;  // base_model_name_or_path, may be empty
  int64_t r = 8;
  double lora_alpha = 8.0;
  double lora_dropout = 0.0;                 // of its training; applying the adapter needs none
  std::vector<std::string> target_modules;   // module names or ends of paths
  std::vector<std::string> modules_to_save;  // saved in full beside the adapter
  bool fan_in_fan_out = false;               // the adapted weights are [in, out] (GPT-2); A and B are as ever
  bool use_rslora = false, use_dora = false;
  PathPatterns<int64_t> rank_pattern;  // end of a module's path -> its rank
  PathPatterns<double> alpha_pattern;  // … its lora_alpha

  // What B·A of a module of this rank is multiplied by: alpha / rank, or alpha / sqrt(rank) with rsLoRA.
  double scale_of(std::string_view module_path, int64_t rank) const;

  // True if PEFT would put an adapter on the module: its path is a target or ends with "." and a target.
  bool targets(std::string_view module_path) const;
};

// The text of adapter_config.json: the classic set of keys, sorted, indented by 2. Old and new PEFT read it without
// warnings.
std::string format_adapter_config(const AdapterConfig& config);

// Throws Error: not an adapter of PEFT, or one that uses what is not supported (for training: a choice of layers, a regular
// expression …; for merging: what changes more than weights).
AdapterConfig parse_adapter_config(std::string_view text, const std::string& where, AdapterUse use = AdapterUse::train);
AdapterConfig read_adapter_config(const std::filesystem::path& directory, AdapterUse use = AdapterUse::train);

// Names of tensors; `module_path`: "model.layers.0.self_attn.q_proj", "lm_head". The embedding has its own names and
// transposed shapes.
std::string lora_a_name(std::string_view module_path);            // [R, in]
std::string lora_b_name(std::string_view module_path);            // [out, R]
std::string lora_magnitude_name(std::string_view module_path);    // [out], of DoRA
std::string lora_embedding_a_name(std::string_view module_path);  // [R, V]
std::string lora_embedding_b_name(std::string_view module_path);  // [C, R]
std::string saved_module_name(std::string_view module_path);      // modules_to_save: the full weight

enum class AdapterPart : uint8_t { lora_a, lora_b, magnitude, embedding_a, embedding_b, saved_module };

struct AdapterTensor {
  std::string module_path;
  AdapterPart part;
};

// What a tensor of adapter_model.safetensors is; none for a name that is not PEFT's.
std::optional<AdapterTensor> parse_adapter_tensor_name(std::string_view name);

}  // namespace snug
