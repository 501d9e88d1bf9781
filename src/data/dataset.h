#pragma once
// A dataset made ready for training: rows of a file become token ids, documents and rows of seq_len, written to a directory
// that `Loader` reads. Memory: at most 40 bytes a document (8 while reading, usually about 20 while packing), 256 rows or 4
// MiB of them, and what reading a Parquet page takes; meant for a child process, so that the trainer itself holds none of
// it.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "data/chat_renderer.h"
#include "data/row_format.h"
#include "recipe/recipe.h"
#include "tokenizer/tokenizer.h"

namespace snug {

// Rows of the training file that are kept for evaluation. Row i of the n good rows in file order is held out if a keyed
// permutation of 0 … n-1 (permutation.h) puts it below the number wanted: exactly so many, the same for the same seed and n.
struct HeldOut {
  std::filesystem::path directory;  // where they go; empty: none are held out
  int64_t rows = 0;                 // so many, or
  double share = 0.0;               // this share of all, rounded up
  uint64_t seed = 42;
};

struct DatasetRequest {
  std::filesystem::path data;       // a file, a directory or a pattern: see find_data_files
  std::filesystem::path directory;  // is made if it is not there; files of an earlier run are replaced
  int64_t seq_len = 0;              // tokens in a row
  bool packing = true;              // several documents in a row; false: one document a row
  bool completion_only_loss = true;
  std::optional<int32_t> eos_id;    // none: the tokenizer's
  int64_t vocab_size = 0;           // the model's: a token id that it lacks is refused; 0: not checked
  bool assistant_only_loss = true;  // conversations: false trains on every token
  ColumnNames columns;              // where the names of the columns say too little
  std::string chat_template;        // a file, or "chatml"; empty: the model's
  std::filesystem::path model;      // directory in which the model's template lies
  bool skip_bad_rows = false;       // leave bad rows out instead of refusing the file
  int64_t most_buckets = 1;         // without packing: rows are padded to at most so many lengths (up to kMostBuckets)
  HeldOut held_out;
  int threads = 1;  // that tokenize; what is written does not depend on it
  // Told of the first 20 bad rows, a line each. May be empty.
  std::function<void(const std::string& line)> complain;
};

// All fields are 8 bytes or arrays of such: this is part of a file.
struct DatasetSummary {
  int64_t seq_len = 0;
  int64_t packing = 0;           // 1 or 0
  int64_t source_rows = 0;       // rows of the file, without bad ones
  int64_t documents = 0;         // after cutting and dropping
  int64_t tokens = 0;            // in documents, eos included
  int64_t label_tokens = 0;      // tokens that are labels, first tokens of documents included
  int64_t target_tokens = 0;     // labels that are really predicted: not the first token of a document
  int64_t longest_document = 0;  // tokens, before cutting
  int64_t cut = 0;               // text rows that became several documents
  int64_t truncated = 0;         // other rows that lost tokens at their end
  int64_t dropped = 0;           // other rows that lost all there was to learn
  int64_t rows = 0;              // rows of seq_len that training sees
  double padding_share = 0.0;    // of the tokens of all rows, each as long as its bucket
  int64_t format = 0;            // RowFormat
  int64_t bad_rows = 0;          // left out
  int64_t held_out = 0;          // rows of the file that went to HeldOut::directory
  int64_t buckets = 1;
  std::array<int64_t, kMostBuckets> bucket_length = {};  // tokens, ascending; one bucket: seq_len
  std::array<int64_t, kMostBuckets> bucket_rows = {};
  std::array<int64_t, 32> lengths = {};  // [i]: rows of the file of 2^i … 2^(i+1) - 1 tokens, before cutting
};

// Tokenizes, cuts, packs and writes; both files appear whole or not at all.
//   text: encode(text, special) + eos; every token is a label; longer than seq_len: cut into several documents
//   prompt/completion: encode(prompt, special) + encode(completion) + eos; labels are the completion and eos, without
//     completion_only_loss everything; longer than seq_len: cut off on the right
//   conversation: encode(rendered by the chat template); labels are the tokens of which a byte belongs to a learned
//     assistant message, without assistant_only_loss everything; longer than seq_len: cut off on the right
// eos is not added where the text already ends with it, nor to conversations. `renderer`: in place of the chat template.
// Throws Error naming file and row: of the only bad row, or how many are bad; also if no row is left.
DatasetSummary prepare_dataset(const DatasetRequest& request, const Tokenizer& tokenizer, const ChatRenderer& renderer = {});

// The summary of a directory that prepare_dataset has written. Throws Error.
DatasetSummary read_dataset_summary(const std::filesystem::path& directory);

// What people want to know before training, in a line or two: "7,473 rows, prompt/completion, 1.2 M tokens (64.0 % learned),
// longest 433; 1,180 sequences of 1,024, 2.1 % padding". Further lines, with indentation, say what was lost.
std::string describe(const DatasetSummary& summary);

// How long the file's rows are, before cutting: "lengths 32–63: 12 %, 64–127: 88 %".
std::string describe_lengths(const DatasetSummary& summary);

}  // namespace snug
