#pragma once
// Counts what an evaluation got right: tokens, and documents whose every predicted token is right.

#include <cstdint>
#include <span>

namespace snug {

class EvaluationCounts {
 public:
  // One batch: targets ascending by row; `document_start` [B, T] tells documents apart.
  void add(std::span<const int32_t> predictions, std::span<const int32_t> target_rows,
           std::span<const int32_t> target_tokens, std::span<const int32_t> document_start, int64_t seq_len);

  double token_accuracy() const {
    return tokens_ == 0 ? 0.0 : static_cast<double>(right_tokens_) / static_cast<double>(tokens_);
  }
  double exact() const { return documents_ == 0 ? 0.0 : static_cast<double>(exact_) / static_cast<double>(documents_); }
  int64_t documents() const { return documents_; }

 private:
  int64_t tokens_ = 0, right_tokens_ = 0, documents_ = 0, exact_ = 0;
};

}  // namespace snug
