#pragma once
// Counts what an evaluation got right: tokens, and documents whose every predicted token is right.

#include <array>
#include <cstdint>

namespace snug {

class EvaluationCounts {
 public:
  // The next target of a batch, in the order of rows; `document`: the row of its document's first token.
  void add(int64_t document, bool right);
  void end_batch();

  // What others counted, as these numbers of theirs; and ours.
  using Numbers = std::array<double, 4>;
  Numbers numbers() const {
    return {static_cast<double>(tokens_), static_cast<double>(right_tokens_), static_cast<double>(documents_),
            static_cast<double>(exact_)};
  }
  void set(const Numbers& numbers) {
    tokens_ = static_cast<int64_t>(numbers[0]);
    right_tokens_ = static_cast<int64_t>(numbers[1]);
    documents_ = static_cast<int64_t>(numbers[2]);
    exact_ = static_cast<int64_t>(numbers[3]);
  }

  double token_accuracy() const {
    return tokens_ == 0 ? 0.0 : static_cast<double>(right_tokens_) / static_cast<double>(tokens_);
  }
  double exact() const { return documents_ == 0 ? 0.0 : static_cast<double>(exact_) / static_cast<double>(documents_); }
  int64_t documents() const { return documents_; }

 private:
  int64_t tokens_ = 0, right_tokens_ = 0, documents_ = 0, exact_ = 0;
  int64_t document_ = -1;  // that is being counted
  bool all_right_ = false;
};

}  // namespace snug
