#pragma once
// Adapters merged into their base model, as a Hugging Face checkpoint of its own: weights in shards, configuration,
// tokenizer.

#include <filesystem>
#include <string>
#include <vector>

#include "formats/adapter_file.h"

namespace snug {

struct MergeRequest {
  std::filesystem::path base;                   // a checkpoint directory
  std::vector<std::filesystem::path> adapters;  // applied in this order
  std::filesystem::path output;
  int64_t shard_bytes = 5'000'000'000;  // of the weights in one file, as Hugging Face splits them
  bool overwrite = false;               // a model that stands in `output` is replaced
};

struct MergeSummary {
  int64_t tensors = 0, changed = 0, replaced = 0, bytes = 0, files = 0;
  bool untied = false;             // the head was tied to the embedding and now stands alone
  bool adapter_tokenizer = false;  // the tokenizer comes from the last adapter's directory
};

// Writes `output`, which appears whole or not at all. Throws Error.
MergeSummary merge_adapters(const MergeRequest& request);

// The base of an adapter that was given without one: the directory that it names. Throws Error if there is none.
std::filesystem::path base_of(const AdapterFile& adapter);

// True if config.json (or its text_config) says that the head is the embedding, or says nothing and there is no head.
bool has_tied_head(const std::filesystem::path& model, bool has_head);

}  // namespace snug
