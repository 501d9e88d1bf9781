#pragma once
// Models and adapters as GGUF files for llama.cpp and what is built on it, as its own converters would write them. Tensors
// stream through: a few rows at a time, or one expert, or for GPT-2's transposed weights one tensor.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf_writer.h"

namespace snug {

struct GgufRequest {
  std::filesystem::path model;                  // a checkpoint directory
  std::vector<std::filesystem::path> adapters;  // merged on the way, in this order
  std::filesystem::path file;
  std::optional<GgufType> type;  // of matrices; none: the checkpoint's own
  std::string pretokenizer;      // llama.cpp's name, where it is not recognized
};

struct GgufSummary {
  int64_t tensors = 0, bytes = 0;
  std::string architecture;
  bool tokenizer = false;
  std::vector<std::string> notes;
};

// "f32", "f16", "bf16", "q8_0"; none for any other word.
std::optional<GgufType> find_gguf_type(std::string_view name);

// Writes `file`, which appears whole or not at all. Throws Error.
GgufSummary export_gguf(const GgufRequest& request);

// Writes an adapter by itself; of `model` only config.json is read. A checkpoint there also tells whether the head is tied.
GgufSummary export_gguf_adapter(const std::filesystem::path& adapter_directory, const std::filesystem::path& model,
                                const std::filesystem::path& target, GgufType type);

}  // namespace snug
