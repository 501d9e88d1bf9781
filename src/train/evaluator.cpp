#include "train/evaluator.h"

namespace snug {

void EvaluationCounts::add(std::span<const int32_t> predictions, std::span<const int32_t> target_rows,
                           std::span<const int32_t> target_tokens, std::span<const int32_t> document_start,
                           int64_t seq_len) {
  int64_t document = -1;  // row of its first token
  bool all_right = false;
  const auto close = [&] { exact_ += document >= 0 && all_right ? 1 : 0; };
  for (size_t i = 0; i < target_rows.size(); ++i) {
    const int64_t row = target_rows[i];
    const int64_t first = row / seq_len * seq_len + document_start[static_cast<size_t>(row)];
    if (first != document) {
      close();
      document = first;
      all_right = true;
      ++documents_;
    }
    const bool right = predictions[i] == target_tokens[i];
    all_right = all_right && right;
    right_tokens_ += right ? 1 : 0;
    ++tokens_;
  }
  close();
}

}  // namespace snug
