#pragma once
// What `snug generate` is asked: its flags, checked, and the questions that it answers.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ask/arguments.h"
#include "base/dtype.h"
#include "formats/generation_config.h"
#include "generate/answer.h"
#include "generate/text_side.h"

namespace snug::cli {

struct GenerateRequest {
  std::filesystem::path model;
  std::vector<std::filesystem::path> adapters;
  std::optional<std::string> prompt, chat, data;  // at most one; none: a chat on the terminal
  Sampling sampling;
  AnswerLimits limits;
  int64_t max_length = 0;      // 0: as needed
  std::optional<DType> dtype;  // of weights, activations and cache; none: as the checkpoint is stored
  int64_t memory_bytes = 0, threads = 0;
  bool json = false;
  std::vector<std::string> ignored;  // of generation_config.json, to be told

  bool interactive() const { return !prompt && !chat && !data; }
};

// Throws UsageError for flags that are missing or contradict each other, Error for bad values.
GenerateRequest read_generate_request(std::span<char* const> words);

// The prompts as tokens: one, or one a row of the file. Throws Error naming the line.
std::vector<std::vector<int32_t>> questions_of(const GenerateRequest& request, const TextSide& text);

}  // namespace snug::cli
