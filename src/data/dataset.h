#pragma once
// A dataset made ready for training: JSONL rows become token ids, documents and rows of seq_len, written to a directory that
// `Loader` reads. Uses memory in proportion to the number of documents (about 40 bytes each) and of one line; meant for a
// child process, so that the trainer itself holds none of it.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "tokenizer/tokenizer.h"

namespace snug {

struct DatasetRequest {
  std::filesystem::path data;       // JSONL, see jsonl.h
  std::filesystem::path directory;  // is made if it is not there; files of an earlier run are replaced
  int64_t seq_len = 0;              // tokens in a row
  bool packing = true;              // several documents in a row; false: one document a row
  bool completion_only_loss = true;
  std::optional<int32_t> eos_id;  // none: the tokenizer's
  int64_t vocab_size = 0;         // the model's: a token id that it lacks is refused; 0: not checked
};

// All fields are 8 bytes: this is part of a file.
struct DatasetSummary {
  int64_t seq_len = 0;
  int64_t packing = 0;           // 1 or 0
  int64_t source_rows = 0;       // rows of the JSONL file
  int64_t documents = 0;         // after cutting and dropping
  int64_t tokens = 0;            // in documents, eos included
  int64_t label_tokens = 0;      // tokens that are labels, first tokens of documents included
  int64_t target_tokens = 0;     // labels that are really predicted: not the first token of a document
  int64_t longest_document = 0;  // tokens, before cutting
  int64_t cut = 0;               // text rows that became several documents
  int64_t truncated = 0;         // prompt/completion rows that lost tokens of their completion
  int64_t dropped = 0;           // prompt/completion rows whose completion was cut away wholly
  int64_t rows = 0;              // rows of seq_len that training sees
  double padding_share = 0.0;    // of rows · seq_len
};

// Tokenizes, cuts, packs and writes; both files appear whole or not at all.
//   text: encode(text, special) + eos; every token is a label; longer than seq_len: cut into several documents
//   prompt/completion: encode(prompt, special) + encode(completion) + eos; labels are the completion and eos, without
//     completion_only_loss everything; longer than seq_len: cut off on the right
// eos is not added where the text already ends with it. Throws Error naming file:line, or if no row is left.
DatasetSummary prepare_dataset(const DatasetRequest& request, const Tokenizer& tokenizer);

// The summary of a directory that prepare_dataset has written. Throws Error.
DatasetSummary read_dataset_summary(const std::filesystem::path& directory);

}  // namespace snug
