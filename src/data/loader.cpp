#include "data/loader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "data/dataset_files.h"
#include "data/permutation.h"

namespace snug {
namespace {

const std::string kPrepareAgain = "remove it and prepare the data again";

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Buckets ascend, and their rows are all there are.
bool buckets_agree(const DatasetSummary& summary) {
  if (summary.buckets < 1 || summary.buckets > kMostBuckets) return false;
  int64_t rows = 0;
  int64_t length = 0;
  for (size_t i = 0; i < static_cast<size_t>(summary.buckets); ++i) {
    if (summary.bucket_length[i] <= length || summary.bucket_rows[i] < 0 || summary.bucket_rows[i] > summary.rows - rows)
      return false;
    length = summary.bucket_length[i];
    rows += summary.bucket_rows[i];
  }
  return rows == summary.rows && length <= summary.seq_len;
}

}  // namespace

// Where a row goes in the batch.
struct Loader::Line {
  int64_t first;    // flattened index of its first token
  int64_t seq_len;  // tokens
};

// The parts, each from its first number to its last: some hundreds of them are held.
struct Loader::Parts {
  class Part {
   public:
    Part(BatchSink& sink, BatchPart part) : sink_(sink), part_(part) {}
    void put(int32_t value) {
      if (held_ == values_.size()) flush();
      values_[held_++] = value;
    }
    void flush() {
      sink_.write(part_, written_, std::span<const int32_t>(values_).first(held_));
      written_ += static_cast<int64_t>(std::exchange(held_, 0));
    }

   private:
    BatchSink& sink_;
    BatchPart part_;
    int64_t written_ = 0;
    size_t held_ = 0;
    std::array<int32_t, 512> values_;
  };

  // Rows and tokens of targets, side by side.
  class Targets {
   public:
    explicit Targets(BatchSink& sink) : sink_(sink) {}
    void put(int32_t row, int32_t token) {
      if (held_ == rows_.size()) flush();
      rows_[held_] = row;
      tokens_[held_++] = token;
    }
    void flush() {
      sink_.write_targets(std::span<const int32_t>(rows_).first(held_), std::span<const int32_t>(tokens_).first(held_));
      held_ = 0;
    }
    void finish() {
      flush();
      sink_.end_targets();
    }

   private:
    BatchSink& sink_;
    size_t held_ = 0;
    std::array<int32_t, 512> rows_, tokens_;
  };

  explicit Parts(BatchSink& sink)
      : tokens(sink, BatchPart::tokens),
        positions(sink, BatchPart::positions),
        document_start(sink, BatchPart::document_start),
        targets(sink) {}

  void put_token(int32_t token, int64_t position, int64_t start) {
    tokens.put(token);
    positions.put(static_cast<int32_t>(position));
    document_start.put(static_cast<int32_t>(start));
  }
  void put_target(int64_t row, int32_t token) { targets.put(static_cast<int32_t>(row), token); }
  void finish() {
    for (Part* part : {&tokens, &positions, &document_start}) part->flush();
    targets.finish();
  }

  Part tokens, positions, document_start;
  Targets targets;
};

Loader::Loader(const std::filesystem::path& directory, const LoaderOptions& options)
    : options_(options), token_file_(token_file(directory), kPrepareAgain), row_file_(row_file(directory), kPrepareAgain) {
  if (options_.batch < 1 || options_.accumulation < 1) throw Error("batch and accumulation must be at least 1");
  TokenHeader tokens;
  token_file_.read_at(writable_bytes_of(tokens), 0);
  if (tokens.magic != kTokenMagic || tokens.version != kDatasetVersion)
    token_file_.refuse("is not a token file of this version");
  RowHeader header;
  row_file_.read_at(writable_bytes_of(header), 0);
  if (header.magic != kRowMagic || header.version != kDatasetVersion) row_file_.refuse("is not a row file of this version");
  summary_ = header.summary;
  highest_token_ = tokens.highest_token;
  all_tokens_ = tokens.tokens;
  if (tokens.stamp != header.stamp || tokens.tokens != header.file_tokens)
    row_file_.refuse("does not belong to the token file beside it");
  if (summary_.rows < 1 || summary_.documents < summary_.rows || summary_.tokens < summary_.documents ||
      summary_.tokens > all_tokens_ || !buckets_agree(summary_) || summary_.seq_len < 1 || summary_.seq_len > kMaxSeqLen ||
      header.most_documents < 1 || header.most_documents > std::min(summary_.seq_len, summary_.documents)) {
    row_file_.refuse("is damaged: its counts contradict each other");
  }
  if (options_.seq_len != 0 && options_.seq_len != summary_.seq_len) {
    row_file_.refuse("was prepared for rows of " + std::to_string(summary_.seq_len) + " tokens, not " +
                     std::to_string(options_.seq_len));
  }
  // Sizes are products of counts from the file; a wrong one must not wrap.
  const int64_t token_bytes = checked_add(sizeof(TokenHeader), checked_mul(all_tokens_, sizeof(uint32_t)));
  const int64_t row_bytes = checked_add(
      sizeof(RowHeader),
      checked_add(checked_mul(summary_.rows, sizeof(RowRecord)), checked_mul(summary_.documents, sizeof(DocumentRecord))));
  if (token_file_.size() != token_bytes)
    token_file_.refuse("is truncated: it should have " + std::to_string(token_bytes) + " bytes");
  if (row_file_.size() != row_bytes)
    row_file_.refuse("is truncated: it should have " + std::to_string(row_bytes) + " bytes");
  documents_.resize(static_cast<size_t>(header.most_documents));
  encoded_.resize(static_cast<size_t>(std::min(summary_.seq_len, summary_.tokens)));
}

Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

int64_t Loader::steps_of(int64_t bucket) const {
  return divide_up(divide_up(summary_.bucket_rows[static_cast<size_t>(bucket)], options_.batch), options_.accumulation);
}

int64_t Loader::steps_per_epoch() const {
  int64_t steps = 0;
  for (int64_t bucket = 0; bucket < summary_.buckets; ++bucket) steps += steps_of(bucket);
  return steps;
}

// Steps have places, those of the longest bucket first. A shuffle gives each step of the epoch a place; in the first epoch
// the first step changes with the one that has place 0.
void Loader::place_window(Window& window) const {
  constexpr uint64_t kStepStream = uint64_t{kMostBuckets} << 32;
  const int64_t steps = steps_per_epoch();
  window.epoch = window.step / steps;
  int64_t place = window.step % steps;
  if (options_.shuffle && summary_.buckets > 1) {
    const Permutation shuffled(static_cast<uint64_t>(steps), options_.seed,
                               kStepStream ^ static_cast<uint64_t>(window.epoch));
    const auto drawn = static_cast<int64_t>(shuffled(static_cast<uint64_t>(place)));
    if (window.epoch > 0 || (drawn != 0 && place != 0)) {
      place = drawn;
    } else if (place != 0) {
      place = static_cast<int64_t>(shuffled(0));
    }
  }
  window.bucket = summary_.buckets - 1;
  while (place >= steps_of(window.bucket)) place -= steps_of(window.bucket--);
  window.seq_len = summary_.bucket_length[static_cast<size_t>(window.bucket)];
  window.first_row = place * checked_mul(options_.batch, options_.accumulation);
}

RowRecord Loader::row_at(const Window& window, int64_t place) const {
  const auto bucket = static_cast<size_t>(window.bucket);
  int64_t index = place;
  if (options_.shuffle) {
    const Permutation permutation(static_cast<uint64_t>(summary_.bucket_rows[bucket]), options_.seed,
                                  static_cast<uint64_t>(window.epoch) ^ static_cast<uint64_t>(bucket) << 32);
    index = static_cast<int64_t>(permutation(static_cast<uint64_t>(place)));
  }
  for (size_t i = 0; i < bucket; ++i) index += summary_.bucket_rows[i];
  RowRecord record;
  row_file_.read_at(writable_bytes_of(record),
                    static_cast<int64_t>(sizeof(RowHeader) + static_cast<size_t>(index) * sizeof(RowRecord)));
  if (record.documents < 1 || record.documents > static_cast<int64_t>(documents_.size()) || record.first_document < 0 ||
      record.first_document > summary_.documents - record.documents || record.tokens < record.documents ||
      record.tokens > window.seq_len || record.targets < 0 || record.targets >= record.tokens ||
      record.labels < record.targets) {
    row_file_.refuse("is damaged at row " + std::to_string(index));
  }
  return record;
}

Window Loader::window(int64_t step) {
  if (step < 0) throw Error("step " + std::to_string(step) + " is negative");
  Window window;
  window.step = step;
  place_window(window);
  const int64_t window_rows = checked_mul(options_.batch, options_.accumulation);
  window.rows = std::min(window_rows, summary_.bucket_rows[static_cast<size_t>(window.bucket)] - window.first_row);
  window.micro_batches = divide_up(window.rows, options_.batch);
  const bool targets = options_.normalization == LossNormalization::targets;
  for (int64_t i = 0; i < window.rows; ++i) {
    const RowRecord row = row_at(window, window.first_row + i);
    window.label_count += targets ? row.targets : row.labels;
    window.target_count += row.targets;
    window.longest_row = std::max<int64_t>(window.longest_row, row.tokens);
  }
  return window;
}

void Loader::check(const BatchSink& sink, int64_t seq_len) const {
  for (size_t part = 0; part < kBatchParts; ++part) {
    const int64_t room = sink.room(static_cast<BatchPart>(part));
    if (room != checked_mul(options_.batch, seq_len))
      throw Error("a batch buffer has " + std::to_string(room) + " elements, not B·T");
  }
}

MicroBatchCounts Loader::fill(const Window& window, int64_t micro_batch, BatchSink& sink) {
  const int64_t length = sink.seq_len == 0 ? window.seq_len : sink.seq_len;
  if (micro_batch < 0 || micro_batch >= options_.accumulation)
    throw Error("the window has no micro-batch " + std::to_string(micro_batch));
  check(sink, length);
  MicroBatchCounts counts;
  Parts parts(sink);
  for (int64_t b = 0; b < options_.batch; ++b) {
    const Line line{b * length, length};
    const int64_t place = micro_batch * options_.batch + b;
    int64_t used = 0;
    if (place < window.rows) {
      const RowRecord row = row_at(window, window.first_row + place);
      if (row.tokens > length) throw Error("a row of " + std::to_string(row.tokens) + " tokens is longer than the batch");
      used = fill_row(row, line, counts, parts);
      ++counts.rows;
    }
    for (int64_t t = used; t < length; ++t) parts.put_token(options_.pad_token, t - used, used);
    counts.tokens += used;
  }
  parts.finish();
  return counts;
}

// Writes the documents of `row`, one behind the other; returns their tokens.
int64_t Loader::fill_row(const RowRecord& row, const Line& line, MicroBatchCounts& counts, Parts& parts) {
  const std::span<DocumentRecord> documents(documents_.data(), static_cast<size_t>(row.documents));
  const int64_t targets_before = counts.targets;
  const auto offset = static_cast<int64_t>(sizeof(RowHeader)) + rows() * static_cast<int64_t>(sizeof(RowRecord)) +
                      row.first_document * static_cast<int64_t>(sizeof(DocumentRecord));
  row_file_.read_at(std::as_writable_bytes(documents), offset);
  int64_t start = 0;
  for (const DocumentRecord& document : documents) {
    if (document.tokens < 1 || document.tokens > row.tokens - start || document.first_token < 0 ||
        document.first_token > all_tokens_ - document.tokens) {
      row_file_.refuse("is damaged at document " + std::to_string(row.first_document));
    }
    const std::span<uint32_t> encoded(encoded_.data(), static_cast<size_t>(document.tokens));
    token_file_.read_at(std::as_writable_bytes(encoded), static_cast<int64_t>(sizeof(TokenHeader)) +
                                                             document.first_token * static_cast<int64_t>(sizeof(uint32_t)));
    for (int64_t i = 0; i < document.tokens; ++i) {
      const uint32_t word = encoded[static_cast<size_t>(i)];
      const auto token = static_cast<int32_t>(word & ~kLabelBit);
      if (token > highest_token_) token_file_.refuse("is damaged at token " + std::to_string(document.first_token + i));
      parts.put_token(token, i, start);
      if (i > 0 && (word & kLabelBit) != 0) {
        parts.put_target(line.first + start + i - 1, token);
        ++counts.targets;
      }
    }
    start += document.tokens;
  }
  if (start != row.tokens || counts.targets - targets_before != row.targets)
    row_file_.refuse("is damaged: a row's counts are wrong");
  return start;
}

}  // namespace snug
