#include "formats/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/atomic_directory.h"
#include "formats/file.h"
#include "formats/merged_weights.h"
#include "formats/model_card.h"
#include "formats/model_directory.h"
#include "formats/safetensors_writer.h"
#include "model/hub_cache.h"

namespace snug {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json", "tokenizer_config.json",   "tokenizer.model",   "vocab.json",
    "merges.txt",     "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"};

// The tokenizer that an adapter was saved with knows tokens and templates that came with its training.
bool copy_adapter_tokenizer(const fs::path& adapter, const fs::path& to) {
  if (!is_there(adapter / "tokenizer.json")) return false;
  for (const char* name : kTokenizerFiles)
    if (is_there(adapter / name)) copy_through(adapter / name, to / name);
  return true;
}

// config.json stays as it is, but for what the adapters made untrue.
void mend_config(const MergedWeights& weights, const fs::path& base, const fs::path& to) {
  Json config = read_config_json(base);
  bool changed = false;
  if (weights.untied()) {
    config["tie_word_embeddings"] = false;
    if (auto& text = text_part(config); &text != &config) text["tie_word_embeddings"] = false;
    changed = true;
  }
  for (const MergedTensor& tensor : weights.tensors()) {
    if (!tensor.name.ends_with("embed_tokens.weight") && !tensor.name.ends_with("wte.weight")) continue;
    Json& text = text_part(config);
    if (tensor.rows() == text.value("vocab_size", tensor.rows())) continue;
    if (const MergedTensor* head = weights.find("lm_head.weight"); head != nullptr && head->rows() != tensor.rows())
      throw Error("the adapters resize the embedding and not the head", base.string());
    text["vocab_size"] = tensor.rows();
    changed = true;
  }
  if (changed) write_file_atomically(to / "config.json", config.dump(2) + "\n");
}

// Tensors in order, as many in a file as fit; one that is larger has a file of its own.
std::vector<std::vector<const MergedTensor*>> split(const MergedWeights& weights, int64_t most_bytes) {
  std::vector<std::vector<const MergedTensor*>> shards;
  int64_t bytes = 0;
  for (const MergedTensor& tensor : weights.tensors()) {
    if (shards.empty() || bytes + tensor.bytes() > most_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += tensor.bytes();
  }
  return shards;
}

void write_shard(const std::vector<const MergedTensor*>& tensors, const fs::path& path) {
  std::vector<TensorToWrite> list;
  std::map<std::string, const MergedTensor*> by_name;
  for (const MergedTensor* tensor : tensors) {
    list.push_back({tensor->name, tensor->dtype, tensor->shape});
    by_name[tensor->name] = tensor;
  }
  SafetensorsWriter writer(path, list);
  std::vector<std::byte> rows;
  for (const TensorEntry& entry : writer.order()) {
    const MergedTensor& tensor = *by_name.at(entry.name);
    MergedReader reader(tensor);
    const int64_t at_once = rows_at_once(tensor);
    for (int64_t row = 0; row < tensor.rows(); row += at_once) {
      rows.resize(static_cast<size_t>(std::min(at_once, tensor.rows() - row) * tensor.row_bytes()));
      reader.read(row, rows);
      writer.write(rows);
    }
  }
  writer.finish();
}

int64_t write_weights(const MergedWeights& weights, int64_t shard_bytes, const fs::path& to) {
  const auto shards = split(weights, shard_bytes);
  int64_t total = 0;
  std::map<std::string, std::string> places;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    write_shard(shards[i], to / name);
    for (const MergedTensor* tensor : shards[i]) {
      places[tensor->name] = name;
      total += tensor->bytes();
    }
  }
  if (shards.size() > 1) write_index(to, places, total);
  return static_cast<int64_t>(shards.size());
}

}  // namespace

fs::path base_of(const AdapterFile& adapter) {
  const std::string& named = adapter.base_model();
  if (named.empty())
    throw Error("the adapter does not name its base model", adapter.path().string(), "add --model DIRECTORY");
  if (fs::is_directory(named)) return named;
  if (const auto snapshot = cached_snapshot(named)) return *snapshot;
  throw Error(fmt::format("its base model '{}' is no directory here, and not in Hugging Face's cache", named),
              adapter.path().string(), "add --model DIRECTORY");
}

bool has_tied_head(const fs::path& model, bool has_head) {
  Json config = read_config_json(model);
  for (const Json* part : {&config, &text_part(config)})
    if (const auto found = part->find("tie_word_embeddings"); found != part->end() && found->is_boolean())
      return found->get<bool>();
  return !has_head;
}

MergeSummary merge_adapters(const MergeRequest& request) {
  if (request.shard_bytes <= 0) throw Error("the size of a shard must be above 0");
  std::vector<fs::path> sources = request.adapters;
  sources.push_back(request.base);
  check_output(request.output, sources, "merged", request.overwrite);
  std::vector<AdapterFile> adapters;
  for (const fs::path& path : request.adapters) adapters.emplace_back(path);
  const Checkpoint base(request.base);
  const MergedWeights weights(base, adapters, has_tied_head(request.base, base.find("lm_head.weight") != nullptr));
  AtomicDirectory output(request.output);
  MergeSummary summary{.tensors = static_cast<int64_t>(weights.tensors().size()),
                       .changed = weights.changed(),
                       .replaced = weights.replaced(),
                       .untied = weights.untied()};
  copy_model_files(request.base, output.path());
  mend_config(weights, request.base, output.path());
  if (!request.adapters.empty()) summary.adapter_tokenizer = copy_adapter_tokenizer(request.adapters.back(), output.path());
  write_file_atomically(output.path() / "README.md", merged_model_card(request.base, request.adapters));
  summary.files = write_weights(weights, request.shard_bytes, output.path());
  for (const MergedTensor& tensor : weights.tensors()) summary.bytes += tensor.bytes();
  output.commit();
  return summary;
}

}  // namespace snug
