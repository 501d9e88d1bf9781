#pragma once
// A temporary directory with what a run needs: a tiny random model made by `snug init`, a byte tokenizer, JSONL text. And
// readers of what a run leaves behind.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/support_process.h"
#include "sanitized.h"

namespace snug::cli_tests {

using Json = nlohmann::ordered_json;

class Workspace {
 public:
  // `config`: fields of config.json that differ from the tiny Llama's.
  explicit Workspace(const Json& config = Json::object(),
                     const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  ~Workspace();

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path model() const { return path_ / "model"; }      // config, float32 weights, tokenizer
  std::filesystem::path outline() const { return path_ / "outline"; }  // the same without weights
  std::filesystem::path data() const { return path_ / "data.jsonl"; }

  // Words of `snug train` on the model and the data, two threads, into `output`; then `more`.
  std::vector<std::string> train(const std::filesystem::path& output, const std::vector<std::string>& more) const;

 private:
  std::filesystem::path path_;
};

// `rows` lines of {"text": …} of varying length, always the same for the same seed.
std::string text_rows(int rows, unsigned seed);

std::string contents(const std::filesystem::path& file);
void put(const std::filesystem::path& file, const std::string& bytes);
std::vector<Json> read_metrics(const std::filesystem::path& output);
// "step 3: loss 5.6, grad_norm 1.2, learning_rate 1e-4" for every step: what must not depend on how often a run was stopped.
std::vector<std::string> step_lines(const std::filesystem::path& output);
// Everything below `directory` whose name speaks of something unfinished.
std::vector<std::string> unfinished(const std::filesystem::path& directory);
// N of the newest checkpoint-N, or -1.
int64_t newest_step(const std::filesystem::path& output);
std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second);

}  // namespace snug::cli_tests
