#pragma once
// Counts what an evaluation got right: tokens, and documents whose every predicted token is right.

#include <array>
#include <cstdint>
#include <span>

namespace snug {

class EvaluationCounts {
 public:
  // The next target of a batch, in the order of rows; `document`: the row of its document's first token.
  void add(int64_t document, bool right);
  void end_batch();

  // A batch whose rows ranks split, each a stretch: what one has counted of it, apart from its first and its last document,
  // which may go on elsewhere.
  struct Stretch {
    int64_t tokens = 0, right_tokens = 0, documents = 0, exact = 0;
    int64_t first = -1, last = -1;  // documents; -1: none
    bool first_right = false, last_right = false;
  };
  // Of what add() has counted since then; nothing of it stays here.
  Stretch take_stretch();
  // The stretches of a batch, in the order of rows.
  void add(std::span<const Stretch> stretches);

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
  void end_document();

  int64_t tokens_ = 0, right_tokens_ = 0, documents_ = 0, exact_ = 0;
  int64_t document_ = -1;  // that is being counted
  bool all_right_ = false;
  int64_t first_ = -1;  // … and was first in its batch
  bool first_right_ = false;
};

}  // namespace snug
