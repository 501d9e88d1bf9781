#include "data/dataset.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/bad_rows.h"
#include "data/batch_encoder.h"
#include "data/buckets.h"
#include "data/dataset_files.h"
#include "data/documents.h"
#include "data/example_reader.h"
#include "data/permutation.h"
#include "data/row_writer.h"
#include "data/template_renderer.h"

namespace snug {
namespace {

namespace fs = std::filesystem;

// Reads all rows of all files into documents.
class Reading {
 public:
  Reading(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer, TokenWriter& writer,
          DatasetSummary& summary)
      : request_(request),
        tokenizer_(tokenizer),
        renderer_(renderer),
        encoders_(request, tokenizer, renderer_),
        reader_(request),
        bad_(request.complain),
        writer_(writer),
        summary_(summary) {}

  void read_all() {
    while (reader_.advance()) add();
    flush();
    const std::string data = request_.data.string();
    if (!request_.skip_bad_rows) bad_.judge(summary_.source_rows + bad_.count(), data);
    if (bad_.count() == 1) bad_.tell_first();
    summary_.bad_rows = bad_.count();
    if (summary_.source_rows == 0 && bad_.count() > 0) throw Error("all rows are bad", data, "mend them");
    if (summary_.source_rows == 0) throw Error("holds no rows", data, "write one JSON object on each line");
    if (documents.count() == 0) {
      throw Error("every prompt fills seq_len, so no completion is left", data,
                  "raise max_length above " + std::to_string(request_.seq_len));
    }
    summary_.format = static_cast<int64_t>(*reader_.format());
  }

  Documents documents;

 private:
  void add() {
    RowBatch::Item& item = batch_.add(reader_.where());
    try {
      item.example = reader_.take();
    } catch (const Error& error) {
      item.problem = error;
    }
    // A template that is missing or not understood is no fault of the row.
    if (!item.problem && item.example.chat && !renderer_) renderer_ = make_template_renderer(request_, tokenizer_);
    if (batch_.is_full()) flush();
  }

  // Encodes the rows that have been gathered and takes them over in their order.
  void flush() {
    encoders_.encode(batch_);
    for (const RowBatch::Item& item : batch_.items()) {
      if (item.problem) {
        const Error& error = *item.problem;
        const std::string problem = error.where().empty() ? error.problem() : error.where() + ": " + error.problem();
        bad_.add(Error(problem, item.where, error.mend()));
      } else {
        take(item.encoded);
      }
    }
    batch_.clear();
  }

  void take(const EncodedRow& row) {
    ++summary_.source_rows;
    summary_.longest_document = std::max(summary_.longest_document, row.length);
    const auto bucket = static_cast<size_t>(std::bit_width(static_cast<uint64_t>(row.length))) - 1;
    ++summary_.lengths[std::min(bucket, summary_.lengths.size() - 1)];
    summary_.cut += row.cut ? 1 : 0;
    summary_.truncated += row.truncated ? 1 : 0;
    summary_.dropped += row.dropped ? 1 : 0;
    if (!row.dropped) writer_.add(row, documents);
  }

  const DatasetRequest& request_;
  const Tokenizer& tokenizer_;
  ChatRenderer renderer_;  // made for the first conversation
  BatchEncoder encoders_;
  ExampleReader reader_;
  BadRows bad_;
  TokenWriter& writer_;
  DatasetSummary& summary_;
  RowBatch batch_;
};

void make_directory(const fs::path& directory) {
  std::error_code code;
  fs::create_directories(directory, code);
  if (code) throw Error("cannot be made: " + code.message(), directory.string(), "give a directory that can be written");
}

// Documents that stay and those that are held out, by the rule of HeldOut; rows without a document do not count.
struct Split {
  std::vector<int32_t> train, held_out;
  int64_t held_out_rows = 0;
};

Split split(const HeldOut& wanted, const Documents& documents, const std::string& data) {
  int64_t rows = 0;
  for (int64_t i = 0; i < documents.count(); ++i) rows += documents.begins_row(i) ? 1 : 0;
  const int64_t count =
      wanted.rows > 0 ? wanted.rows : static_cast<int64_t>(std::ceil(wanted.share * static_cast<double>(rows)));
  if (count < 1 || count >= rows) {
    throw Error("holding out " + std::to_string(count) + " of " + std::to_string(rows) + " rows leaves nothing", data,
                "hold out at least 1 and fewer than all");
  }
  constexpr uint64_t kSplitEpoch = 0xFFFFFFFF;  // none that training reaches
  const Permutation permutation(static_cast<uint64_t>(rows), wanted.seed, kSplitEpoch);
  Split parts;
  parts.held_out_rows = count;
  int64_t row = -1;
  bool out = false;
  for (int64_t i = 0; i < documents.count(); ++i) {
    if (documents.begins_row(i)) out = permutation(static_cast<uint64_t>(++row)) < static_cast<uint64_t>(count);
    (out ? parts.held_out : parts.train).push_back(static_cast<int32_t>(i));
  }
  return parts;
}

// The same token file under another directory: a second name, or a copy where the file system has no such thing.
void share_tokens(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::remove(token_file(to), code);
  fs::create_hard_link(token_file(from), token_file(to), code);
  if (code) fs::copy_file(token_file(from), token_file(to), fs::copy_options::overwrite_existing, code);
  if (code) throw Error("cannot be written: " + code.message(), token_file(to).string(), "check the free space");
}

void check(const DatasetRequest& request) {
  if (request.seq_len < 2 || request.seq_len > kMaxSeqLen) {
    throw Error("max_length is " + std::to_string(request.seq_len), {},
                "give 2 to " + std::to_string(kMaxSeqLen) + " tokens");
  }
  if (request.most_buckets < 1 || request.most_buckets > kMostBuckets)
    throw Error("the number of bucket lengths is " + std::to_string(request.most_buckets), {}, "give 1 to 4");
}

// Counts that write_rows fills in for each part by itself.
DatasetSummary without_rows(DatasetSummary summary) {
  summary.documents = summary.tokens = summary.label_tokens = summary.target_tokens = summary.rows = 0;
  summary.bucket_rows = {};
  return summary;
}

}  // namespace

DatasetSummary prepare_dataset(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer) {
  check(request);
  make_directory(request.directory);
  DatasetSummary summary;
  summary.seq_len = request.seq_len;
  summary.packing = request.packing ? 1 : 0;
  TokenWriter writer(request.directory);
  Reading reading(request, tokenizer, renderer, writer, summary);
  reading.read_all();
  const Documents& documents = reading.documents;
  const std::vector<int64_t> buckets =
      choose_buckets(documents.lengths(), request.seq_len, request.packing ? 1 : request.most_buckets);
  summary.buckets = static_cast<int64_t>(buckets.size());
  std::ranges::copy(buckets, summary.bucket_length.begin());
  const bool split_off = !request.held_out.directory.empty();
  const Split parts = split_off ? split(request.held_out, documents, request.data.string()) : Split();
  const TokenHeader tokens = writer.commit();
  if (split_off) {
    make_directory(request.held_out.directory);
    share_tokens(request.directory, request.held_out.directory);
    DatasetSummary held_out = without_rows(summary);
    held_out.source_rows = parts.held_out_rows;
    write_rows(request.held_out.directory, tokens, documents, &parts.held_out, held_out);
    summary.held_out = parts.held_out_rows;
  }
  write_rows(request.directory, tokens, documents, split_off ? &parts.train : nullptr, summary);
  return summary;
}

DatasetSummary read_dataset_summary(const fs::path& directory) {
  const InputFile file(row_file(directory), "prepare the data again");
  RowHeader header;
  file.read_at(writable_bytes_of(header), 0);
  if (header.magic != kRowMagic || header.version != kDatasetVersion) file.refuse("is not a row file of this version");
  return header.summary;
}

}  // namespace snug
