#include "data/documents.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/hash.h"

namespace snug {

void Documents::add(std::span<const uint32_t> tokens, bool begins_row) {
  if (lengths_.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) throw Error("too many documents");
  const auto labels =
      static_cast<int32_t>(std::ranges::count_if(tokens, [](uint32_t token) { return (token & kLabelBit) != 0; }));
  const bool first = !tokens.empty() && (tokens.front() & kLabelBit) != 0;
  lengths_.push_back(static_cast<int32_t>(tokens.size()));
  labels_.push_back(labels | (first ? kFirstIsLabel : 0) | (begins_row ? kBeginsRow : 0));
}

TokenWriter::TokenWriter(const std::filesystem::path& directory) : file_(token_file(directory)) {
  file_.write(bytes_of(header_));
}

void TokenWriter::add(const EncodedRow& row, Documents& documents) {
  for (const uint32_t token : row.tokens) {
    header_.highest_token = std::max(header_.highest_token, static_cast<int32_t>(token & ~kLabelBit));
    header_.stamp = hash_word(header_.stamp + 1, token);
  }
  header_.tokens += static_cast<int64_t>(row.tokens.size());
  file_.write(std::as_bytes(std::span(row.tokens)));
  std::span<const uint32_t> rest(row.tokens);
  for (size_t i = 0; i < row.sizes.size(); ++i) {
    const auto size = static_cast<size_t>(row.sizes[i]);
    documents.add(rest.first(size), i == 0);
    rest = rest.subspan(size);
  }
}

const TokenHeader& TokenWriter::commit() {
  file_.write_front(bytes_of(header_));
  file_.commit();
  return header_;
}

}  // namespace snug
