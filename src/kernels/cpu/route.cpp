// route and its gradient: choices token by token, then one pass over all of them in order, which gives each its row.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/softmax_rows.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/table.h"

namespace snug::kernels {
namespace {

// Orders logits, whatever they are.
float rank_of(float logit) { return std::isnan(logit) ? std::numeric_limits<float>::infinity() : logit; }

// chosen[0 … choices) = the experts of the largest logits, in falling order; among equals in the order of experts.
void choose(const float* logits, int64_t experts, int64_t choices, int32_t* chosen) {
  int64_t count = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const float rank = rank_of(logits[expert]);
    int64_t place = count;
    while (place > 0 && rank > rank_of(logits[chosen[place - 1]])) --place;
    if (place == choices) continue;
    count = std::min(count + 1, choices);
    std::copy_backward(chosen + place, chosen + count - 1, chosen + count);
    chosen[place] = static_cast<int32_t>(expert);
  }
}

void weigh(const Route& op, const float* logits, const int32_t* chosen, float* weights) {
  const float most = logits[chosen[0]];
  float chosen_sum = 0;
  for (int64_t j = 0; j < op.choices; ++j) chosen_sum += weights[j] = std::exp(logits[chosen[j]] - most);
  const float sum = op.normalize ? chosen_sum : sum_of_exp(logits, op.experts, most);
  for (int64_t j = 0; j < op.choices; ++j) weights[j] /= sum;
}

// expert_rows, which hold the chosen experts, become the row of each choice; next_row: E int32.
void give_rows(const Route& op, int32_t* all_rows) {
  const int64_t all = op.rows * op.choices;
  std::fill_n(all_rows, op.experts, 0);
  for (int64_t i = 0; i < all; ++i) ++all_rows[op.expert_rows[i]];
  int32_t* const next_row = all_rows + op.first_expert;  // of those here
  std::fill_n(op.tile_experts, op.routed_rows / op.tile, -1);
  std::fill_n(op.row_tokens, op.routed_rows, -1);
  int64_t tile = 0;
  for (int64_t expert = 0; expert < op.here; ++expert) {
    const int64_t tiles = (next_row[expert] + op.tile - 1) / op.tile;
    if ((tile + tiles) * op.tile > op.routed_rows) throw Error("route needs more rows than the plan gives it");
    next_row[expert] = static_cast<int32_t>(tile * op.tile);
    std::fill_n(op.tile_experts + tile, tiles, static_cast<int32_t>(expert));
    tile += tiles;
  }
  for (int64_t i = 0; i < all; ++i) {
    const int64_t expert = op.expert_rows[i] - op.first_expert;
    if (expert < 0 || expert >= op.here) {
      op.expert_rows[i] = -1 - op.expert_rows[i];
      continue;
    }
    const int32_t row = next_row[expert]++;
    op.row_tokens[row] = static_cast<int32_t>(i / op.choices);
    op.expert_rows[i] = row;
  }
}

// What one token's logits get. With weights w of the J chosen and s = the sum of w * d_w: w * (d_w - s) for them and, where
// all E logits make the weights, -p * s for every expert besides.
void token_backward(const RouteBackward& op, int64_t token) {
  const int64_t first = token * op.choices;
  const float* const weights = op.route_weights + first;
  const float* const d_weights = op.d_route_weights + first;
  float* const d_logits = op.d_logits + token * op.experts;
  const auto expert_of = [&](int64_t j) {
    const int32_t row = op.expert_rows[first + j];
    return row < 0 ? -1 - row : op.first_expert + op.tile_experts[row / op.tile];
  };
  float sum = 0;
  for (int64_t j = 0; j < op.choices; ++j) sum += weights[j] * d_weights[j];
  if (op.normalize) {
    std::fill_n(d_logits, op.experts, 0.0F);
    for (int64_t j = 0; j < op.choices; ++j) d_logits[expert_of(j)] = weights[j] * (d_weights[j] - sum);
    return;
  }
  const float* const logits = op.logits + token * op.experts;
  std::copy_n(logits, op.experts, d_logits);
  // p = exp(logit - the first choice's logit) * the first choice's weight
  exp_in_place(d_logits, op.experts, logits[expert_of(0)], -sum * weights[0], 0.0F);
  for (int64_t j = 0; j < op.choices; ++j) d_logits[expert_of(j)] += weights[j] * d_weights[j];
}

}  // namespace

void route(const Route& op) {
  require_workspace(op.workspace, op.experts * size_of(DType::i32), "route");
  if (op.choices < 1 || op.choices > op.experts)
    throw Error("a token cannot choose " + std::to_string(op.choices) + " of " + std::to_string(op.experts) + " experts");
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const float* const logits = op.logits + token * op.experts;
      int32_t* const chosen = op.expert_rows + token * op.choices;
      choose(logits, op.experts, op.choices, chosen);
      weigh(op, logits, chosen, op.route_weights + token * op.choices);
    }
  });
  give_rows(op, static_cast<int32_t*>(op.workspace.data));
}

void route_backward(const RouteBackward& op) {
  for_parts(op.cut.threads, op.rows, 1, [&](int32_t, int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) token_backward(op, token);
  });
}

const Kernel cpu::route = cpu::plain<Route, kernels::route>();
const Kernel cpu::route_backward = cpu::plain<RouteBackward, kernels::route_backward>();

}  // namespace snug::kernels
