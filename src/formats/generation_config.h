#pragma once
// What a checkpoint says about generating: generation_config.json, and the end-of-text tokens of config.json.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace snug {

struct GenerationDefaults {
  bool do_sample = false;
  double temperature = 1.0;
  double top_p = 1.0;
  int64_t top_k = 50;                // transformers' own default where it samples
  std::vector<int32_t> stop_tokens;  // eos_token_id of generation_config.json, else of config.json
  std::vector<std::string> ignored;  // settings that transformers would apply and this program does not: "min_p 0.1"
};

// Throws Error naming the file and the field; a directory without generation_config.json has transformers' defaults.
GenerationDefaults read_generation_defaults(const std::filesystem::path& model);

// The same from the texts of both files, either of which may be empty; `where` names the directory.
GenerationDefaults parse_generation_defaults(const std::string& generation_config, const std::string& config,
                                             const std::string& where);

}  // namespace snug
