// Routing: which rows are whose, and sums over a token's choices.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "kernels/fp64/table.h"
#include "kernels/fp64/values.h"
#include "kernels/ops/routing.h"

namespace snug::kernels::fp64 {
namespace {

// Rows in the order of experts, then tokens; each expert's share ends with padding.
void give_rows(const Route& op, const std::vector<std::vector<int32_t>>& choices_by_expert) {
  for (size_t expert = 0; expert < choices_by_expert.size(); ++expert)
    for (const int32_t choice : choices_by_expert[expert]) op.expert_rows[choice] = -1 - static_cast<int32_t>(expert);
  std::fill_n(op.row_tokens, op.routed_rows, -1);
  std::fill_n(op.tile_experts, op.routed_rows / op.tile, -1);
  int64_t row = 0;
  const auto first = static_cast<size_t>(op.first_expert);
  for (size_t expert = first; expert < first + static_cast<size_t>(op.here); ++expert) {
    const int64_t end = (row + static_cast<int64_t>(choices_by_expert[expert].size()) + op.tile - 1) / op.tile * op.tile;
    if (end > op.routed_rows) throw Error("route needs more rows than the plan gives it");
    for (int64_t tile = row / op.tile; tile < end / op.tile; ++tile)
      op.tile_experts[tile] = static_cast<int32_t>(expert - first);
    for (const int32_t choice : choices_by_expert[expert]) {
      op.row_tokens[row] = choice / static_cast<int32_t>(op.choices);
      op.expert_rows[choice] = static_cast<int32_t>(row++);
    }
    row = end;
  }
}

void route(const Route& op) {
  std::vector<std::vector<int32_t>> choices_by_expert(static_cast<size_t>(op.experts));
  for (int64_t token = 0; token < op.rows; ++token) {
    const float* const logits = op.logits + token * op.experts;
    const auto rank = [&](int64_t expert) { return std::isnan(logits[expert]) ? HUGE_VALF : logits[expert]; };
    std::vector<int64_t> order(static_cast<size_t>(op.experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return rank(a) > rank(b); });
    const auto share = [&](int64_t expert) { return std::exp(static_cast<double>(logits[expert] - logits[order[0]])); };
    double sum = 0;
    for (int64_t i = 0; i < (op.normalize ? op.choices : op.experts); ++i) sum += share(order[static_cast<size_t>(i)]);
    for (int64_t j = 0; j < op.choices; ++j) {
      const int64_t expert = order[static_cast<size_t>(j)];
      op.route_weights[token * op.choices + j] = static_cast<float>(share(expert) / sum);
      choices_by_expert[static_cast<size_t>(expert)].push_back(static_cast<int32_t>(token * op.choices + j));
    }
  }
  give_rows(op, choices_by_expert);
}

// Of a softmax: p_e * (d_e - sum of p * d), where d is the gradient of those that count and 0 for the others.
void route_backward(const RouteBackward& op) {
  std::fill_n(op.d_logits, op.rows * op.experts, 0.0F);
  for (int64_t token = 0; token < op.rows; ++token) {
    const int64_t first = token * op.choices;
    const auto expert_of = [&](int64_t j) {
      const int32_t row = op.expert_rows[first + j];
      return row < 0 ? -1 - row : op.first_expert + op.tile_experts[row / op.tile];
    };
    float* const d_logits = op.d_logits + token * op.experts;
    double sum = 0;
    for (int64_t j = 0; j < op.choices; ++j)
      sum += static_cast<double>(op.route_weights[first + j]) * static_cast<double>(op.d_route_weights[first + j]);
    if (!op.normalize) {
      const float* const logits = op.logits + token * op.experts;
      const auto most = static_cast<double>(*std::max_element(logits, logits + op.experts));
      double all = 0;
      for (int64_t e = 0; e < op.experts; ++e) all += std::exp(static_cast<double>(logits[e]) - most);
      for (int64_t e = 0; e < op.experts; ++e)
        d_logits[e] = static_cast<float>(-std::exp(static_cast<double>(logits[e]) - most) / all * sum);
    }
    for (int64_t j = 0; j < op.choices; ++j) {
      const auto weight = static_cast<double>(op.route_weights[first + j]);
      const auto d_weight = static_cast<double>(op.d_route_weights[first + j]);
      d_logits[expert_of(j)] += static_cast<float>(weight * (op.normalize ? d_weight - sum : d_weight));
    }
  }
}

void gather_rows(const GatherRows& op) {
  for (int64_t i = 0; i < op.routed_rows * op.cols; ++i) {
    const int32_t token = op.row_tokens[i / op.cols];
    Writer(op.out).set(i, token < 0 ? 0.0 : Reader(op.x)[token * op.cols + i % op.cols]);
  }
}

void gather_rows_backward(const GatherRowsBackward& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i) {
    double sum = op.accumulate ? static_cast<double>(op.d_x[i]) : 0.0;
    for (int64_t j = 0; j < op.choices; ++j)
      if (op.expert_rows[i / op.cols * op.choices + j] >= 0)
        sum += static_cast<double>(op.d_out[op.expert_rows[i / op.cols * op.choices + j] * op.cols + i % op.cols]);
    op.d_x[i] = static_cast<float>(sum);
  }
}

void combine(const Combine& op) {
  for (int64_t i = 0; i < op.rows * op.cols; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < op.choices; ++j) {
      const int64_t choice = i / op.cols * op.choices + j;
      if (op.expert_rows[choice] < 0) continue;
      sum += static_cast<double>(op.route_weights[choice]) * Reader(op.x)[op.expert_rows[choice] * op.cols + i % op.cols];
    }
    Writer(op.out).set(i, sum);
  }
}

void combine_backward(const CombineBackward& op) {
  if (op.d_x != nullptr) std::fill_n(op.d_x, op.routed_rows * op.cols, 0.0F);
  for (int64_t choice = 0; choice < op.rows * op.choices; ++choice) {
    const int64_t row = op.expert_rows[choice];
    if (row < 0) {
      if (op.d_route_weights != nullptr) op.d_route_weights[choice] = 0.0F;
      continue;
    }
    const float* const d_out = op.d_out + choice / op.choices * op.cols;
    double sum = 0;
    for (int64_t j = 0; j < op.cols; ++j) {
      if (op.d_x != nullptr) op.d_x[row * op.cols + j] = op.route_weights[choice] * d_out[j];
      sum += static_cast<double>(d_out[j]) * Reader(op.x)[row * op.cols + j];
    }
    if (op.d_route_weights != nullptr) op.d_route_weights[choice] = static_cast<float>(sum);
  }
}

}  // namespace

const Kernel entries::route = plain<Route, fp64::route>();
const Kernel entries::route_backward = plain<RouteBackward, fp64::route_backward>();
const Kernel entries::gather_rows = plain<GatherRows, fp64::gather_rows>();
const Kernel entries::gather_rows_backward = plain<GatherRowsBackward, fp64::gather_rows_backward>();
const Kernel entries::combine = plain<Combine, fp64::combine>();
const Kernel entries::combine_backward = plain<CombineBackward, fp64::combine_backward>();

}  // namespace snug::kernels::fp64
