#pragma once
// Loader: micro-batches from a prepared dataset. Which rows a step sees is a pure function of the step, the seed and the
// files, so resuming needs nothing. Where rows are padded to several bucket lengths, a step has rows of one bucket, steps
// come in shuffled order, and the very first one is of the longest bucket, so that trouble shows at once. Files are read
// with pread; all buffers are made by the constructor and nothing is allocated after it, unless an Error is thrown. It does
// not know models.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/file.h"
#include "data/dataset.h"
#include "recipe/recipe.h"

namespace snug {

struct DocumentRecord;
struct RowRecord;

struct LoaderOptions {
  int64_t batch = 1;         // B: rows in a micro-batch
  int64_t accumulation = 1;  // k: micro-batches in a step
  int64_t seq_len = 0;       // T that the files must have been prepared for; 0: whatever they have
  bool shuffle = true;       // false: file order, longest bucket first; packed rows in the order of their first documents
  uint64_t seed = 42;
  LossNormalization normalization = LossNormalization::targets;
  int32_t pad_token = 0;
};

// What one optimizer step reads. The last window of a bucket may have fewer micro-batches and rows.
struct Window {
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t bucket = 0;         // index into DatasetSummary::bucket_length
  int64_t seq_len = 0;        // that bucket's length in tokens: T of this step
  int64_t first_row = 0;      // place in the epoch's order of that bucket
  int64_t rows = 0;           // real ones, ≤ B · k
  int64_t micro_batches = 0;  // ≤ k
  int64_t label_count = 0;    // what the summed loss is divided by; 0 if the window has no label
  int64_t target_count = 0;   // tokens that are really predicted
  int64_t longest_row = 0;    // tokens: a batch may be cut to this length
};

// The parts of a micro-batch, row-major, each of B·T numbers.
enum class BatchPart : uint8_t {
  tokens,          // [B, T]; padding is pad_token
  positions,       // [B, T]; 0 at the start of each document
  document_start,  // [B, T]; t of the first token of this token's document; padding is a document
  target_rows,     // [B·T]; ascending m = b·T + t whose next token is predicted; 0 beyond the targets
  target_tokens,   // [B·T]; the token to predict at each of them; 0 beyond
};
constexpr size_t kBatchParts = 5;

// Where a micro-batch goes, all of it. T here is `seq_len`, or the window's if 0; at least the longest row's tokens.
class BatchSink {
 public:
  explicit BatchSink(int64_t row_tokens = 0) : seq_len(row_tokens) {}
  virtual ~BatchSink() = default;
  // The numbers that a part has.
  virtual int64_t room(BatchPart part) const = 0;
  // The next numbers of a part that is no target, of which it has had `begin`.
  virtual void write(BatchPart part, int64_t begin, std::span<const int32_t> values) = 0;
  // The next targets, as many rows as tokens; when all have come, zeros follow them.
  virtual void write_targets(std::span<const int32_t> rows, std::span<const int32_t> tokens) = 0;
  virtual void end_targets() = 0;

  const int64_t seq_len;
};

struct MicroBatchCounts {
  int64_t targets = 0;  // valid entries of target_rows and target_tokens
  int64_t tokens = 0;   // real ones
  int64_t rows = 0;     // real ones
};

class Loader {
 public:
  // Opens what prepare_dataset wrote. Throws Error if files are missing, damaged, of two runs, or of another seq_len.
  Loader(const std::filesystem::path& directory, const LoaderOptions& options);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  const DatasetSummary& summary() const { return summary_; }
  int64_t rows() const { return summary_.rows; }
  int64_t seq_len() const { return summary_.seq_len; }

  // The highest token id in the files; must be below the model's vocabulary.
  int32_t highest_token() const { return highest_token_; }

  // The sum of ceil(ceil(rows / B) / k) over the buckets; at least 1.
  int64_t steps_per_epoch() const;

  // What step `step` (from 0, through all epochs) reads. Reads the sizes of its rows, no token.
  Window window(int64_t step);

  // Writes micro-batch `micro_batch` (0 … k - 1) of `window`; missing rows are padding, all from micro_batches on. Throws
  // Error if the sink has another size, a row is longer than T or the files turn out damaged.
  MicroBatchCounts fill(const Window& window, int64_t micro_batch, BatchSink& sink);

 private:
  struct Line;
  struct Parts;

  int64_t steps_of(int64_t bucket) const;
  void place_window(Window& window) const;
  RowRecord row_at(const Window& window, int64_t place) const;
  int64_t fill_row(const RowRecord& row, const Line& line, MicroBatchCounts& counts, Parts& parts);
  void check(const BatchSink& sink, int64_t seq_len) const;

  LoaderOptions options_;
  InputFile token_file_, row_file_;
  DatasetSummary summary_;
  int32_t highest_token_ = -1;
  int64_t all_tokens_ = 0;
  std::vector<DocumentRecord> documents_;  // [most documents in a row]
  std::vector<uint32_t> encoded_;          // [T]: one document as it stands in the file
};

}  // namespace snug
