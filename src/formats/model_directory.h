#pragma once
// What a command that makes a model of a model shares with others of its kind: the files beside the weights, config.json,
// names of shards, and where the result may stand. Knows nothing of tensors.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace snug {

// Throws Error: it is missing, or not a JSON object.
nlohmann::ordered_json read_config_json(const std::filesystem::path& model);

// The part of config.json that describes the language model: "text_config", or all of it.
nlohmann::ordered_json& text_part(nlohmann::ordered_json& config);

// Copies a file of up to 1 GiB.
void copy_through(const std::filesystem::path& from, const std::filesystem::path& to);

// Copies what is neither weights (in any format), nor of this directory alone: configuration, tokenizer, licence.
void copy_model_files(const std::filesystem::path& base, const std::filesystem::path& to);

// What stands in the output's place is replaced as a whole, so it must not be more than a model, and none of `sources`.
// `done`: what happens to those, "merged". Throws Error.
void check_output(const std::filesystem::path& output, std::span<const std::filesystem::path> sources, std::string_view done,
                  bool overwrite);

// "model.safetensors", or "model-00001-of-00002.safetensors" for index 0 of 2.
std::string shard_name(size_t index, size_t count);

// model.safetensors.index.json. `places`: tensor -> file, sorted as Hugging Face writes them.
void write_index(const std::filesystem::path& directory, const std::map<std::string, std::string>& places,
                 int64_t total_bytes);

}  // namespace snug
