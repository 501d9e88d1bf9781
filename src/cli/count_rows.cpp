#include "cli/count_rows.h"

#include <stdlib.h>

#include <cerrno>
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

// Tokens of all rows as they are computed: a packed row is as long as the recipe says, a padded one as its bucket.
double computed_tokens(const DatasetSummary& summary) {
  if (summary.packing != 0) return static_cast<double>(summary.rows) * static_cast<double>(summary.seq_len);
  double tokens = 0;
  for (size_t bucket = 0; bucket < static_cast<size_t>(summary.buckets); ++bucket)
    tokens += static_cast<double>(summary.bucket_rows[bucket]) * static_cast<double>(summary.bucket_length[bucket]);
  return tokens;
}

}  // namespace

CountedData count_rows(const Plan& plan) {
  const TemporaryDirectory directory;
  DatasetRequest request = dataset_request(plan);
  request.directory = directory.path();
  const DatasetSummary summary = prepare_in_child(request, plan.recipe.model);
  const Workload workload{.examples = summary.source_rows,
                          .tokens = summary.tokens,
                          .rows = summary.rows,
                          .computed_tokens = computed_tokens(summary)};
  return {workload, describe(summary) + "\n  " + describe_lengths(summary), summary.longest_document};
}

}  // namespace snug::cli
