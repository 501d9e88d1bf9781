#include "train/evaluator.h"

#include <utility>

namespace snug {

void EvaluationCounts::add(int64_t document, bool right) {
  if (document != document_) {
    end_document();
    document_ = document;
    all_right_ = true;
    if (first_ < 0) first_ = document;
  }
  all_right_ = all_right_ && right;
  right_tokens_ += right ? 1 : 0;
  ++tokens_;
}

void EvaluationCounts::end_document() {
  if (document_ < 0) return;
  if (document_ == first_) first_right_ = all_right_;
  ++documents_;
  exact_ += all_right_ ? 1 : 0;
}

void EvaluationCounts::end_batch() {
  end_document();
  document_ = first_ = -1;
}

EvaluationCounts::Stretch EvaluationCounts::take_stretch() {
  Stretch own{.first = first_, .last = document_, .last_right = all_right_};
  end_batch();
  own.first_right = first_right_;
  own.tokens = std::exchange(tokens_, 0);
  own.right_tokens = std::exchange(right_tokens_, 0);
  own.documents = std::exchange(documents_, 0);
  own.exact = std::exchange(exact_, 0);
  if (own.first < 0) return own;
  --own.documents;
  own.exact -= own.first_right ? 1 : 0;
  if (own.last == own.first) return own;
  --own.documents;
  own.exact -= own.last_right ? 1 : 0;
  return own;
}

void EvaluationCounts::add(std::span<const Stretch> stretches) {
  const auto go_on = [&](int64_t document, bool right) {
    if (document != document_) end_document();
    all_right_ = (document != document_ || all_right_) && right;
    document_ = document;
  };
  for (const Stretch& stretch : stretches) {
    tokens_ += stretch.tokens;
    right_tokens_ += stretch.right_tokens;
    if (stretch.first < 0) continue;
    go_on(stretch.first, stretch.first_right);
    documents_ += stretch.documents;
    exact_ += stretch.exact;
    if (stretch.last != stretch.first) go_on(stretch.last, stretch.last_right);
  }
  end_batch();
}

}  // namespace snug
