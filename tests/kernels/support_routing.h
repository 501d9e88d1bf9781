#pragma once
// A routing made by the `route` kernel between guards, and what must hold of any routing.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "op/routed_rows.h"

namespace snug::tests {

struct RoutingCase {
  int64_t tokens, experts, choices;
  std::string name() const {
    return std::to_string(tokens) + " tokens, " + std::to_string(choices) + " of " + std::to_string(experts) + " experts";
  }
};

struct Routing {
  static constexpr size_t kGuard = 16;
  static constexpr int32_t kMark = 0x5a5a5a5a;

  RoutingCase c;
  int64_t rows = 0, tile = 0;
  std::vector<float> weights;
  std::vector<int32_t> expert_rows, row_tokens, tile_experts, workspace;
  kernels::Route op;

  // Of the rank at this place among those that split experts.
  Routing(const RoutingCase& of, const float* logits, bool normalize, int32_t threads = 2, int64_t ranks = 1,
          int64_t place = 0)
      : c(of) {
    const RoutedRows routed = routed_rows(c.tokens, c.experts, c.choices, ranks);
    rows = routed.rows, tile = routed.tile;
    weights.resize(static_cast<size_t>(c.tokens * c.choices));
    for (auto [part, size] : {std::pair{&expert_rows, c.tokens * c.choices},
                              {&row_tokens, rows},
                              {&tile_experts, rows / tile},
                              {&workspace, c.experts}})
      part->assign(static_cast<size_t>(size) + kGuard, kMark);
    op = {.logits = logits,
          .route_weights = weights.data(),
          .expert_rows = expert_rows.data(),
          .row_tokens = row_tokens.data(),
          .tile_experts = tile_experts.data(),
          .rows = c.tokens,
          .experts = c.experts,
          .choices = c.choices,
          .routed_rows = rows,
          .tile = tile,
          .first_expert = place * c.experts / ranks,
          .here = c.experts / ranks,
          .normalize = normalize,
          .workspace = {workspace.data(), c.experts * 4},
          .cut = {.threads = threads}};
    kernels::route(op);
    for (auto* part : {&expert_rows, &row_tokens, &tile_experts, &workspace}) {
      EXPECT_TRUE(std::all_of(part->end() - kGuard, part->end(), [](int32_t mark) { return mark == kMark; }));
      part->resize(part->size() - kGuard);
    }
  }
  Routing(const Routing&) = delete;

  bool operator==(const Routing& other) const {
    return std::equal(weights.begin(), weights.end(), other.weights.begin()) && expert_rows == other.expert_rows &&
           row_tokens == other.row_tokens && tile_experts == other.tile_experts;
  }

  std::vector<int32_t> experts_chosen() const {
    std::vector<int32_t> chosen;
    for (int32_t row : expert_rows)
      chosen.push_back(row < 0 ? -1 - row
                               : static_cast<int32_t>(op.first_expert) + tile_experts.at(static_cast<size_t>(row / tile)));
    return chosen;
  }

  // Every choice has a row of its own in a tile of one expert; a token's experts are distinct; the rest is padding; rows go
  // by expert, then token; used tiles come first.
  void expect_sound() const {
    std::vector<int32_t> token_of(static_cast<size_t>(rows), -1);
    for (size_t i = 0; i < expert_rows.size(); ++i) {
      ASSERT_GE(expert_rows[i], 0) << c.name();
      ASSERT_LT(expert_rows[i], rows) << c.name();
      ASSERT_EQ(token_of[static_cast<size_t>(expert_rows[i])], -1) << "two choices in one row, " << c.name();
      token_of[static_cast<size_t>(expert_rows[i])] = static_cast<int32_t>(i) / static_cast<int32_t>(c.choices);
    }
    ASSERT_EQ(token_of, row_tokens) << c.name();
    int32_t expert = -1, token = -1;
    for (int64_t row = 0; row < rows; ++row) {
      const int32_t of = tile_experts[static_cast<size_t>(row / tile)];
      ASSERT_TRUE(of >= -1 && of < c.experts);
      if (row_tokens[static_cast<size_t>(row)] < 0) continue;
      ASSERT_GE(of, std::max(expert, 0)) << c.name();
      ASSERT_TRUE(of > expert || row_tokens[static_cast<size_t>(row)] > token) << c.name();
      expert = of, token = row_tokens[static_cast<size_t>(row)];
    }
    const auto unused = std::find(tile_experts.begin(), tile_experts.end(), -1);
    ASSERT_TRUE(std::all_of(unused, tile_experts.end(), [](int32_t of) { return of == -1; })) << c.name();
    ASSERT_EQ(static_cast<int64_t>(std::count_if(row_tokens.begin(), row_tokens.end(), [](int32_t t) { return t >= 0; })),
              c.tokens * c.choices);
  }
};

}  // namespace snug::tests
