#include "cli/count_data.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "train/prepare_data.h"

namespace snug::cli {

namespace {

namespace fs = std::filesystem;

class TemporaryDirectory {
 public:
  TemporaryDirectory() : name_((fs::temp_directory_path() / "snug-count-XXXXXX").string()) {
    if (mkdtemp(name_.data()) == nullptr) throw Error(std::strerror(errno), name_, "set TMPDIR to a directory with room");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(name_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  fs::path path() const { return name_; }

 private:
  std::string name_;
};

int64_t count_flag(const Arguments& arguments, const std::string& name, int64_t most) {
  const std::string word = arguments.value(name);
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size() || value < 1 || value > most)
    throw Error("'" + word + "' is no number of this kind", "--" + name,
                fmt::format("give a whole number from 1 to {}", most));
  return value;
}

// Tokens of all rows as they are computed: a packed row is as long as the recipe says, a padded one as its bucket.
double computed_tokens(const DatasetSummary& summary) {
  if (summary.packing != 0) return static_cast<double>(summary.rows) * static_cast<double>(summary.seq_len);
  double tokens = 0;
  for (size_t bucket = 0; bucket < static_cast<size_t>(summary.buckets); ++bucket)
    tokens += static_cast<double>(summary.bucket_rows[bucket]) * static_cast<double>(summary.bucket_length[bucket]);
  return tokens;
}

}  // namespace

std::optional<CountedData> count_data(const Arguments& arguments, const Plan& plan) {
  if (arguments.has("examples") != arguments.has("example-tokens"))
    throw UsageError("--examples N and --example-tokens M go together");
  if (arguments.has("examples")) {
    const int64_t examples = count_flag(arguments, "examples", kMostExamples);
    const int64_t tokens = count_flag(arguments, "example-tokens", kMostExampleTokens);
    return counted_examples(plan, examples, tokens);
  }
  if (plan.recipe.data.empty()) return std::nullopt;
  if (!fs::is_directory(plan.recipe.model))
    throw Error("its tokens cannot be counted: a catalogue name brings no tokenizer", plan.recipe.data,
                "give the model's directory, or --examples N --example-tokens M in place of --data");
  const TemporaryDirectory directory;
  DatasetRequest request = dataset_request(plan);
  request.directory = directory.path();
  const DatasetSummary summary = prepare_in_child(request, plan.recipe.model);
  const Workload workload{.examples = summary.source_rows,
                          .tokens = summary.tokens,
                          .rows = summary.rows,
                          .computed_tokens = computed_tokens(summary)};
  return CountedData{workload, describe(summary) + "\n  " + describe_lengths(summary), summary.longest_document};
}

}  // namespace snug::cli
