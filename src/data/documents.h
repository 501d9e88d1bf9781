#pragma once
// Documents on their way to the token file, and what is remembered of each: 8 bytes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/dataset_files.h"
#include "data/example_encoder.h"

namespace snug {

class Documents {
 public:
  struct Size {
    int32_t tokens, labels, targets;
  };

  int64_t count() const { return static_cast<int64_t>(lengths_.size()); }
  std::span<const int32_t> lengths() const { return lengths_; }

  Size size(int64_t document) const {
    const auto i = static_cast<size_t>(document);
    const int32_t labels = labels_[i] & kCount;
    return {lengths_[i], labels, labels - ((labels_[i] & kFirstIsLabel) != 0 ? 1 : 0)};
  }

  // True if the document is the first of its source row.
  bool begins_row(int64_t document) const { return (labels_[static_cast<size_t>(document)] & kBeginsRow) != 0; }

  void add(std::span<const uint32_t> tokens, bool begins_row);

 private:
  static constexpr int32_t kFirstIsLabel = 1 << 30;
  static constexpr int32_t kBeginsRow = 1 << 29;
  static constexpr int32_t kCount = kBeginsRow - 1;
  static_assert(kMaxSeqLen <= kCount);

  std::vector<int32_t> lengths_;
  std::vector<int32_t> labels_;  // how many, and the flags
};

// Writes the token file.
class TokenWriter {
 public:
  explicit TokenWriter(const std::filesystem::path& directory);

  // The documents of a row, which are added to `documents`.
  void add(const EncodedRow& row, Documents& documents);

  // Puts the finished file in place.
  const TokenHeader& commit();

 private:
  OutputFile file_;
  TokenHeader header_;
};

}  // namespace snug
