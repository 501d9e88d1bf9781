#include "train/evaluator.h"

namespace snug {

void EvaluationCounts::add(int64_t document, bool right) {
  if (document != document_) {
    end_batch();
    document_ = document;
    all_right_ = true;
    ++documents_;
  }
  all_right_ = all_right_ && right;
  right_tokens_ += right ? 1 : 0;
  ++tokens_;
}

void EvaluationCounts::end_batch() {
  exact_ += document_ >= 0 && all_right_ ? 1 : 0;
  document_ = -1;
}

}  // namespace snug
