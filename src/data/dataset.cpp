#include "data/dataset.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/dataset_files.h"
#include "data/jsonl.h"
#include "data/packing.h"

namespace snug {
namespace {

struct Document {
  int32_t tokens = 0, labels = 0, targets = 0;
};

// Writes documents to the token file and remembers their sizes.
class DocumentWriter {
 public:
  DocumentWriter(const DatasetRequest& request, const std::string& tokenizer_mend)
      : request_(request), mend_(tokenizer_mend), file_(token_file(request.directory)) {
    file_.write(bytes_of(header_));
  }

  // A document whose tokens from `first_label` on are labels. `where` names the row in errors.
  void add(std::span<const int32_t> ids, int64_t first_label, const std::string& where) {
    encoded_.clear();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (request_.vocab_size > 0 && ids[i] >= request_.vocab_size) {
        throw Error("token id " + std::to_string(ids[i]) + " is beyond the model's vocabulary of " +
                        std::to_string(request_.vocab_size),
                    where, mend_);
      }
      header_.highest_token = std::max(header_.highest_token, ids[i]);
      const bool label = static_cast<int64_t>(i) >= first_label;
      encoded_.push_back(static_cast<uint32_t>(ids[i]) | (label ? kLabelBit : 0U));
      header_.stamp = hash_word(header_.stamp + 1, encoded_.back());
    }
    file_.write(std::as_bytes(std::span(encoded_)));
    const auto tokens = static_cast<int32_t>(ids.size());
    const auto labels = static_cast<int32_t>(std::max<int64_t>(0, tokens - first_label));
    documents_.push_back({tokens, labels, labels - (first_label == 0 ? 1 : 0)});
    header_.tokens += tokens;
  }

  // Puts the finished file in place.
  const TokenHeader& commit() {
    file_.write_front(bytes_of(header_));
    file_.commit();
    return header_;
  }

  const TokenHeader& header() const { return header_; }
  const std::vector<Document>& documents() const { return documents_; }

 private:
  const DatasetRequest& request_;
  std::string mend_;
  OutputFile file_;
  TokenHeader header_;
  std::vector<uint32_t> encoded_;
  std::vector<Document> documents_;
};

// Turns rows into documents by the rules of the header.
class RowCutter {
 public:
  RowCutter(const DatasetRequest& request, const Tokenizer& tokenizer, int32_t eos, DocumentWriter& writer,
            DatasetSummary& summary)
      : request_(request), tokenizer_(tokenizer), eos_(eos), writer_(writer), summary_(summary) {}

  void text(std::string_view text, const std::string& where) {
    ids_.clear();
    tokenizer_.encode_into(text, true, ids_);
    end_with_eos(0);
    const auto seq_len = static_cast<size_t>(request_.seq_len);
    if (ids_.size() > seq_len) ++summary_.cut;
    for (std::span<const int32_t> rest(ids_); !rest.empty();) {
      const size_t count = std::min(seq_len, rest.size());
      writer_.add(rest.first(count), 0, where);
      rest = rest.subspan(count);
    }
  }

  void prompt_completion(std::string_view prompt, std::string_view completion, const std::string& where) {
    ids_.clear();
    tokenizer_.encode_into(prompt, true, ids_);
    const auto prompt_tokens = static_cast<int64_t>(ids_.size());
    tokenizer_.encode_into(completion, false, ids_);
    end_with_eos(prompt_tokens);
    if (prompt_tokens >= request_.seq_len) {
      ++summary_.dropped;
      return;
    }
    if (static_cast<int64_t>(ids_.size()) > request_.seq_len) {
      ++summary_.truncated;
      ids_.resize(static_cast<size_t>(request_.seq_len));
    }
    writer_.add(ids_, request_.completion_only_loss ? prompt_tokens : 0, where);
  }

 private:
  // Adds eos unless what starts at token `begin` already ends with it.
  void end_with_eos(int64_t begin) {
    if (static_cast<int64_t>(ids_.size()) == begin || ids_.back() != eos_) ids_.push_back(eos_);
    summary_.longest_document = std::max(summary_.longest_document, static_cast<int64_t>(ids_.size()));
  }

  const DatasetRequest& request_;
  const Tokenizer& tokenizer_;
  int32_t eos_;
  DocumentWriter& writer_;
  DatasetSummary& summary_;
  std::vector<int32_t> ids_;
};

int32_t eos_of(const DatasetRequest& request, const Tokenizer& tokenizer) {
  const auto eos = request.eos_id ? request.eos_id : tokenizer.eos_id();
  if (!eos) throw Error("the end-of-text token is not known", {}, "name eos_token in tokenizer_config.json");
  if (*eos < 0) throw Error("the end-of-text token is " + std::to_string(*eos), {}, "give a token id");
  return *eos;
}

void tokenize(const DatasetRequest& request, const Tokenizer& tokenizer, DocumentWriter& writer, DatasetSummary& summary) {
  RowCutter cutter(request, tokenizer, eos_of(request, tokenizer), writer, summary);
  LineReader lines(request.data);
  RowParser parser(request.data.string());
  while (const auto line = lines.next()) {
    const auto row = parser.parse(*line, lines.line_number());
    if (!row) continue;
    ++summary.source_rows;
    const std::string where = request.data.string() + ":" + std::to_string(lines.line_number());
    if (*parser.format() == RowFormat::text) {
      cutter.text(row->text, where);
    } else {
      cutter.prompt_completion(row->prompt, row->completion, where);
    }
  }
  if (summary.source_rows == 0) throw Error("holds no rows", request.data.string(), "write one JSON object on each line");
  if (writer.documents().empty()) {
    throw Error("every prompt fills seq_len, so no completion is left", request.data.string(),
                "raise max_length above " + std::to_string(request.seq_len));
  }
}

// Writes the row file: records of rows, then of documents in the order of the rows.
void write_rows(const DatasetRequest& request, const std::vector<Document>& documents, const PackedRows& packed,
                RowHeader header) {
  std::vector<int64_t> first_token(documents.size());
  int64_t token = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    first_token[i] = token;
    token += documents[i].tokens;
  }
  OutputFile file(row_file(request.directory));
  file.write(bytes_of(header));
  for (int64_t r = 0; r < packed.rows(); ++r) {
    const int64_t begin = packed.first[static_cast<size_t>(r)];
    const int64_t end = packed.first[static_cast<size_t>(r) + 1];
    RowRecord row;
    row.first_document = begin;
    row.documents = static_cast<int32_t>(end - begin);
    for (int64_t i = begin; i < end; ++i) {
      const Document& document = documents[static_cast<size_t>(packed.documents[static_cast<size_t>(i)])];
      row.tokens += document.tokens;
      row.targets += document.targets;
      // TRL masks the first token of every document of a packed row.
      row.labels += request.packing ? document.targets : document.labels;
    }
    header.most_documents = std::max(header.most_documents, row.documents);
    file.write(bytes_of(row));
  }
  for (const int32_t document : packed.documents) {
    const DocumentRecord record{first_token[static_cast<size_t>(document)], documents[static_cast<size_t>(document)].tokens};
    file.write(bytes_of(record));
  }
  file.write_front(bytes_of(header));
  file.commit();
}

PackedRows arrange(const DatasetRequest& request, const std::vector<Document>& documents) {
  if (!request.packing) return one_each(static_cast<int64_t>(documents.size()));
  std::vector<int32_t> lengths;
  lengths.reserve(documents.size());
  for (const Document& document : documents) lengths.push_back(document.tokens);
  return pack(lengths, request.seq_len);
}

}  // namespace

DatasetSummary prepare_dataset(const DatasetRequest& request, const Tokenizer& tokenizer) {
  if (request.seq_len < 2 || request.seq_len > kMaxSeqLen) {
    throw Error("max_length is " + std::to_string(request.seq_len), {},
                "give 2 to " + std::to_string(kMaxSeqLen) + " tokens");
  }
  std::error_code code;
  std::filesystem::create_directories(request.directory, code);
  if (code)
    throw Error("cannot be made: " + code.message(), request.directory.string(), "give a directory that can be written");

  RowHeader header;
  DatasetSummary& summary = header.summary;
  summary.seq_len = request.seq_len;
  summary.packing = request.packing ? 1 : 0;
  DocumentWriter writer(request, "use the tokenizer that belongs to the model");
  tokenize(request, tokenizer, writer, summary);
  const PackedRows packed = arrange(request, writer.documents());
  summary.documents = static_cast<int64_t>(writer.documents().size());
  summary.tokens = writer.header().tokens;
  for (const Document& document : writer.documents()) {
    summary.label_tokens += document.labels;
    summary.target_tokens += document.targets;
  }
  summary.rows = packed.rows();
  summary.padding_share =
      1.0 - static_cast<double>(summary.tokens) / (static_cast<double>(summary.rows) * static_cast<double>(summary.seq_len));
  header.stamp = writer.commit().stamp;
  write_rows(request, writer.documents(), packed, header);
  return summary;
}

DatasetSummary read_dataset_summary(const std::filesystem::path& directory) {
  const InputFile file(row_file(directory), "prepare the data again");
  RowHeader header;
  file.read_at(writable_bytes_of(header), 0);
  if (header.magic != kRowMagic || header.version != kDatasetVersion) file.refuse("is not a row file of this version");
  return header.summary;
}

}  // namespace snug
