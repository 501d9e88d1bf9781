#include "data/row_writer.h"

#include <algorithm>
#include <numeric>

#include "data/buckets.h"
#include "data/packing.h"

namespace snug {
namespace {

// Where each document begins in the token file: every 64th is remembered, those between are counted from it.
class FirstTokens {
 public:
  explicit FirstTokens(std::span<const int32_t> lengths) : lengths_(lengths) {
    int64_t token = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (i % kStride == 0) marks_.push_back(token);
      token += lengths[i];
    }
  }
  int64_t operator[](size_t document) const {
    int64_t token = marks_[document / kStride];
    for (size_t i = document / kStride * kStride; i < document; ++i) token += lengths_[i];
    return token;
  }

 private:
  static constexpr size_t kStride = 64;
  std::span<const int32_t> lengths_;
  std::vector<int64_t> marks_;
};

// Documents in the order of their buckets, within one in their own order.
std::vector<int32_t> by_bucket(std::span<const int32_t> lengths, DatasetSummary& summary) {
  const std::span<const int64_t> buckets = std::span(summary.bucket_length).first(static_cast<size_t>(summary.buckets));
  for (const int32_t length : lengths) ++summary.bucket_rows[static_cast<size_t>(bucket_of(buckets, length))];
  std::array<int64_t, kMostBuckets> next{};
  std::exclusive_scan(summary.bucket_rows.begin(), summary.bucket_rows.end(), next.begin(), int64_t{0});
  std::vector<int32_t> order(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i)
    order[static_cast<size_t>(next[static_cast<size_t>(bucket_of(buckets, lengths[i]))]++)] = static_cast<int32_t>(i);
  return order;
}

class RowWriter {
 public:
  RowWriter(const std::filesystem::path& directory, const TokenHeader& tokens, const Documents& documents,
            const std::vector<int32_t>* chosen, DatasetSummary& summary)
      : documents_(documents),
        chosen_(chosen),
        summary_(summary),
        first_tokens_(documents.lengths()),
        file_(row_file(directory)) {
    header_.stamp = tokens.stamp;
    header_.file_tokens = tokens.tokens;
    file_.write(bytes_of(header_));
  }

  void begin_row(int64_t documents) {
    row_ = {};
    row_.first_document = next_document_;
    row_.documents = static_cast<int32_t>(documents);
    next_document_ += documents;
    header_.most_documents = std::max(header_.most_documents, row_.documents);
  }

  void add(int32_t index) {
    const Documents::Size size = documents_.size(at(index));
    row_.tokens += size.tokens;
    row_.targets += size.targets;
    // TRL masks the first token of every document of a packed row.
    row_.labels += summary_.packing != 0 ? size.targets : size.labels;
    summary_.label_tokens += size.labels;
  }

  void end_row() {
    ++summary_.rows;
    summary_.tokens += row_.tokens;
    summary_.target_tokens += row_.targets;
    file_.write(bytes_of(row_));
  }

  void place(int32_t index) {
    const int64_t document = at(index);
    const DocumentRecord record{first_tokens_[static_cast<size_t>(document)], documents_.size(document).tokens};
    file_.write(bytes_of(record));
  }

  void commit() {
    summary_.documents = next_document_;
    int64_t places = 0;
    for (size_t i = 0; i < kMostBuckets; ++i) places += summary_.bucket_length[i] * summary_.bucket_rows[i];
    summary_.padding_share = 1.0 - static_cast<double>(summary_.tokens) / static_cast<double>(places);
    header_.summary = summary_;
    file_.write_front(bytes_of(header_));
    file_.commit();
  }

 private:
  int64_t at(int32_t index) const { return chosen_ == nullptr ? index : (*chosen_)[static_cast<size_t>(index)]; }

  const Documents& documents_;
  const std::vector<int32_t>* chosen_;
  DatasetSummary& summary_;
  FirstTokens first_tokens_;
  OutputFile file_;
  RowHeader header_;
  RowRecord row_;
  int64_t next_document_ = 0;
};

void write_packed(RowWriter& writer, std::span<const int32_t> lengths, DatasetSummary& summary) {
  const PackedRows packed = pack(lengths, summary.seq_len);
  summary.bucket_rows[0] = packed.rows();
  for (int64_t r = 0; r < packed.rows(); ++r) {
    const int64_t begin = packed.first[static_cast<size_t>(r)];
    const int64_t end = packed.first[static_cast<size_t>(r) + 1];
    writer.begin_row(end - begin);
    for (int64_t i = begin; i < end; ++i) writer.add(packed.documents[static_cast<size_t>(i)]);
    writer.end_row();
  }
  for (const int32_t document : packed.documents) writer.place(document);
}

void write_padded(RowWriter& writer, std::span<const int32_t> lengths, DatasetSummary& summary) {
  const std::vector<int32_t> order = by_bucket(lengths, summary);
  for (const int32_t document : order) {
    writer.begin_row(1);
    writer.add(document);
    writer.end_row();
  }
  for (const int32_t document : order) writer.place(document);
}

}  // namespace

void write_rows(const std::filesystem::path& directory, const TokenHeader& tokens, const Documents& documents,
                const std::vector<int32_t>* chosen, DatasetSummary& summary) {
  std::vector<int32_t> chosen_lengths;
  if (chosen != nullptr) {
    for (const int32_t document : *chosen) chosen_lengths.push_back(documents.lengths()[static_cast<size_t>(document)]);
  }
  const std::span<const int32_t> lengths =
      chosen == nullptr ? documents.lengths() : std::span<const int32_t>(chosen_lengths);
  RowWriter writer(directory, tokens, documents, chosen, summary);
  if (summary.packing != 0) {
    write_packed(writer, lengths, summary);
  } else {
    write_padded(writer, lengths, summary);
  }
  writer.commit();
}

}  // namespace snug
