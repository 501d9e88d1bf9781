// The output head and its loss, with the logits of one target at a time.

#include "kernels/ops/head_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"

namespace snug::kernels::fp64 {
namespace {

std::vector<double> logits_of(const HeadLoss& op, int64_t row) {
  std::vector<double> logits(static_cast<size_t>(op.vocabulary));
  for (int64_t v = 0; v < op.vocabulary; ++v) {
    double sum = 0;
    for (int64_t j = 0; j < op.cols; ++j) sum += Reader(op.hidden)[row * op.cols + j] * Reader(op.weight)[v * op.cols + j];
    for (int64_t j = 0; j < op.rank; ++j) sum += Reader(op.low)[row * op.rank + j] * Reader(op.low_weight)[v * op.rank + j];
    const auto cap = static_cast<double>(op.softcap);
    logits[static_cast<size_t>(v)] = cap > 0 ? cap * std::tanh(sum / cap) : sum;
  }
  return logits;
}

// d of one row and of the weights, from d of its logits before the cap.
void carry_back(const In& values, const In& weight, float* d_values, float* d_weight, int64_t inner, int64_t row,
                const std::vector<double>& d_logits) {
  for (int64_t j = 0; j < inner; ++j) {
    double sum = 0;
    for (size_t v = 0; v < d_logits.size(); ++v) {
      const int64_t at = static_cast<int64_t>(v) * inner + j;
      sum += d_logits[v] * Reader(weight)[at];
      if (d_weight != nullptr) d_weight[at] += static_cast<float>(d_logits[v] * Reader(values)[row * inner + j]);
    }
    if (d_values != nullptr) d_values[row * inner + j] = static_cast<float>(sum);
  }
}

void head_loss(const HeadLoss& op) {
  const auto targets = static_cast<int64_t>(scalar(op.scalars, Scalar::target_count));
  const double share = scalar(op.scalars, Scalar::inverse_labels);
  if (op.d_hidden != nullptr) std::fill_n(op.d_hidden, op.rows * op.cols, 0.0F);
  if (op.d_low != nullptr) std::fill_n(op.d_low, op.rows * op.rank, 0.0F);
  for (int64_t i = 0; i < targets; ++i) {
    const int64_t row = op.target_rows[i];
    std::vector<double> logits = logits_of(op, row);
    const auto best = std::max_element(logits.begin(), logits.end());
    const double most = *best;
    if (op.predictions != nullptr) op.predictions[i] = static_cast<int32_t>(best - logits.begin());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - most);
    const auto target = static_cast<size_t>(op.target_tokens[i]);
    scalar(op.scalars, Scalar::loss_sum) += (most + std::log(sum) - logits[target]) * share;
    if (op.d_hidden == nullptr) continue;
    for (size_t v = 0; v < logits.size(); ++v) {
      const auto cap = static_cast<double>(op.softcap);
      const double slope = cap > 0 ? 1.0 - logits[v] / cap * (logits[v] / cap) : 1.0;
      logits[v] = (std::exp(logits[v] - most) / sum - (v == target ? 1.0 : 0.0)) * share * slope *
                  scalar(op.scalars, Scalar::loss_scale);
    }
    carry_back(op.hidden, op.weight, op.d_hidden, op.d_weight, op.cols, row, logits);
    carry_back(op.low, op.low_weight, op.d_low, op.d_low_weight, op.rank, row, logits);
  }
}

}  // namespace

const Kernel entries::head_loss = plain<HeadLoss, fp64::head_loss>();

}  // namespace snug::kernels::fp64
