// route, gather_rows, combine and their gradients: against plain loops in fp64 and central differences, whatever the logits.

#include <numeric>

#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/row_reference.h"
#include "kernels/support_allocations.h"
#include "kernels/support_routing.h"
#include "op/routed_rows.h"

namespace snug::kernels::testing {
namespace {

using tests::Routing;
using tests::RoutingCase;

constexpr RoutingCase kCases[] = {{1, 1, 1},  {5, 1, 1},    {7, 3, 2},   {64, 8, 2},  {33, 8, 8},
                                  {3, 60, 8}, {100, 60, 4}, {257, 8, 1}, {600, 5, 3}, {40, 128, 8}};

Values token_logits(const RoutingCase& c, uint64_t stream) { return random_values(c.tokens * c.experts, stream, 2.0); }

// The plain form: softmax over all, sort, renormalise.
struct RouteReference {
  const RoutingCase& c;
  bool normalize;

  std::vector<int32_t> chosen(const Values& logits) const {
    std::vector<int32_t> all;
    for (int64_t m = 0; m < c.tokens; ++m) {
      std::vector<int32_t> order(static_cast<size_t>(c.experts));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t a, int32_t b) { return logits[m * c.experts + a] > logits[m * c.experts + b]; });
      all.insert(all.end(), order.begin(), order.begin() + c.choices);
    }
    return all;
  }
  // With the choices given, so that a difference quotient does not change them.
  Values weights(const Values& logits, const std::vector<int32_t>& experts) const {
    Values result(experts.size());
    for (int64_t m = 0; m < c.tokens; ++m) {
      double all = 0, some = 0;
      for (int64_t e = 0; e < c.experts; ++e) all += std::exp(logits[m * c.experts + e]);
      for (int64_t j = 0; j < c.choices; ++j) some += std::exp(logits[m * c.experts + experts[m * c.choices + j]]);
      for (int64_t j = 0; j < c.choices; ++j)
        result[m * c.choices + j] = std::exp(logits[m * c.experts + experts[m * c.choices + j]]) / (normalize ? some : all);
    }
    return result;
  }
};

TEST(Route, ChoosesTheLargestWeighsThemAndSortsRowsByExpert) {
  for (const RoutingCase& c : kCases) {
    for (bool normalize : {false, true}) {
      const Operand logits(token_logits(c, 1), DType::f32);
      const Routing routing(c, static_cast<const float*>(logits.data()), normalize);
      const RouteReference reference{c, normalize};
      const auto chosen = reference.chosen(logits.values());
      ASSERT_EQ(routing.experts_chosen(), chosen) << c.name();
      const Values weights(routing.weights.begin(), routing.weights.end());
      expect_close(weights, reference.weights(logits.values(), chosen), 1e-5, c.name());
      routing.expect_sound();
      for (int32_t threads : {1, 3}) {
        const Routing other(c, static_cast<const float*>(logits.data()), normalize, threads);
        ASSERT_TRUE(routing == other) << c.name();
      }
    }
  }
}

TEST(Route, AmongEqualLogitsTheLowestExpertComesFirst) {
  const RoutingCase c{6, 8, 3};
  const std::vector<float> equal(static_cast<size_t>(c.tokens * c.experts), 0.5F);
  const Routing routing(c, equal.data(), true);
  routing.expect_sound();
  for (int64_t i = 0; i < c.tokens * c.choices; ++i) {
    EXPECT_EQ(routing.experts_chosen()[i], i % c.choices);
    EXPECT_FLOAT_EQ(routing.weights[i], 1.0F / 3.0F);
  }
  std::vector<float> pairs = equal;
  for (int64_t m = 0; m < c.tokens; ++m) pairs[m * 8 + 6] = pairs[m * 8 + 5] = 1.0F;
  const Routing later(c, pairs.data(), true);
  for (int64_t m = 0; m < c.tokens; ++m) {
    EXPECT_EQ(later.experts_chosen()[m * 3], 5);
    EXPECT_EQ(later.experts_chosen()[m * 3 + 1], 6);
    EXPECT_EQ(later.experts_chosen()[m * 3 + 2], 0);
  }
}

// All tokens to the same experts: the others have no tile at all.
TEST(Route, ExpertsWithoutTokensTakeNoRows) {
  const RoutingCase c{130, 16, 2};
  std::vector<float> logits(static_cast<size_t>(c.tokens * c.experts), 0.0F);
  for (int64_t m = 0; m < c.tokens; ++m) logits[m * 16 + 11] = 2.0F, logits[m * 16 + 3] = 1.0F;
  const Routing routing(c, logits.data(), false);
  routing.expect_sound();
  for (int32_t expert : routing.tile_experts) EXPECT_TRUE(expert == 11 || expert == 3 || expert == -1);
}

TEST(Route, StaysWithinItsBoundsWhateverTheLogitsAre) {
  const float kOdd[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 1e38F, -1e38F, 1e-45F};
  for (const RoutingCase& c : kCases) {
    for (uint64_t trial = 0; trial < 40; ++trial) {
      std::vector<float> logits(static_cast<size_t>(c.tokens * c.experts));
      for (size_t i = 0; i < logits.size(); ++i) {
        const uint32_t word = Philox{.seed = trial}.words(i)[0];
        logits[i] = trial < 8 ? kOdd[trial] : kOdd[word % (trial < 24 ? 8 : 3)];
      }
      for (bool normalize : {false, true}) Routing(c, logits.data(), normalize).expect_sound();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Route, NotANumberReachesTheWeights) {
  const RoutingCase c{2, 8, 2};
  std::vector<float> logits(16, 1.0F);
  logits[5] = NAN;
  for (bool normalize : {false, true}) {
    const Routing routing(c, logits.data(), normalize);
    EXPECT_TRUE(std::isnan(routing.weights[0]) && std::isnan(routing.weights[1]));
    EXPECT_FALSE(std::isnan(routing.weights[2]) || std::isnan(routing.weights[3]));
  }
}

// The bound is reached: every expert but one has one token more than fills its tiles.
TEST(Route, TheBoundOfRowsHoldsAndIsTight) {
  for (int64_t tokens : {1, 2, 9, 63, 64, 65, 500, 4096}) {
    for (int64_t experts : {1, 2, 8, 60, 128}) {
      for (int64_t choices : {1, 2, 8}) {
        if (choices > experts) continue;
        const auto [rows, tile] = routed_rows(tokens, experts, choices);
        const int64_t needed = tokens * choices, used = std::min(experts, needed);
        EXPECT_EQ(rows % tile, 0);
        // The worst counts: as many experts as can be hold one row more than whole tiles.
        const int64_t worst = (needed - used) / tile * tile + used * tile;
        EXPECT_EQ(rows, worst);
        EXPECT_TRUE(tile == 8 || rows <= needed + needed / 4);
      }
    }
  }
  EXPECT_EQ(routed_rows(2048, 8, 2).tile, 64);
}

TEST(Route, RefusesMoreChoicesThanExpertsAndTooFewRows) {
  std::vector<float> logits(8, 0.0F), weights(12);
  std::vector<int32_t> rows(12), tokens(8), tiles(1), counts(2);
  Route op{logits.data(), weights.data(), rows.data(), tokens.data(), tiles.data(), 4, 2, 3, 8, 8};
  op.workspace = {counts.data(), 8};
  EXPECT_THROW(route(op), Error);
  op.choices = op.here = 2;  // two experts of four tokens need two tiles
  EXPECT_THROW(route(op), Error);
}

TEST(Route, GradientsEqualCentralDifferences) {
  on_every_target([](const std::string& target) {
    for (const RoutingCase& c : kCases) {
      for (bool normalize : {false, true}) {
        const Operand logits(token_logits(c, 2), DType::f32);
        const Routing routing(c, static_cast<const float*>(logits.data()), normalize);
        const auto chosen = routing.experts_chosen();
        const Values d = random_values(c.tokens * c.choices, 3);
        Operand d_weights(d, DType::f32), d_logits(c.tokens * c.experts, DType::f32);
        RouteBackward op{.d_route_weights = d_weights.f32(),
                         .route_weights = routing.weights.data(),
                         .expert_rows = routing.expert_rows.data(),
                         .tile_experts = routing.tile_experts.data(),
                         .logits = normalize ? nullptr : static_cast<const float*>(logits.data()),
                         .d_logits = d_logits.f32(),
                         .rows = c.tokens,
                         .experts = c.experts,
                         .choices = c.choices,
                         .tile = routing.tile,
                         .normalize = normalize,
                         .cut = {.threads = 2}};
        route_backward(op);
        ASSERT_TRUE(d_logits.intact());
        if (c.experts == 1 || (normalize && c.choices == 1)) {  // the weight is 1, whatever the logits are
          for (double value : d_logits.values()) ASSERT_NEAR(value, 0.0, 1e-6);
          continue;
        }
        const RouteReference reference{c, normalize};
        ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(reference.weights(v, chosen), d); },
                                                logits.values(), d_logits.values(), target + " " + c.name()));
      }
    }
  });
}

struct RowsTrial {
  RoutingCase c;
  int64_t cols;
  Operand logits;
  Routing routing;
  RowsTrial(const RoutingCase& of, int64_t width)
      : c(of), cols(width), logits(token_logits(of, 4), DType::f32), routing(of, logits.f32(), false) {}
  int64_t needed() const { return c.tokens * c.choices; }
  size_t at(int64_t i) const { return static_cast<size_t>(routing.expert_rows[i] * cols); }
};

TEST(GatherRows, CopiesTokensAndZeroesPadding) {
  on_every_target([](const std::string& target) {
    for (const RoutingCase& c : kCases) {
      for (DType from : kStorages) {
        for (DType to : kStorages) {
          if (!may_meet({from, to})) continue;
          RowsTrial t(c, 37);
          const Operand x(random_values(c.tokens * t.cols, 5), from);
          Operand out(t.routing.rows * t.cols, to);
          gather_rows({x.in(),
                       t.routing.expert_rows.data(),
                       t.routing.row_tokens.data(),
                       out.out(),
                       c.tokens,
                       t.cols,
                       c.choices,
                       t.routing.rows,
                       {.threads = 2}});
          const Values values = out.values(), truth = x.values();
          for (int64_t row = 0; row < t.routing.rows; ++row) {
            const int32_t token = t.routing.row_tokens[row];
            for (int64_t i = 0; i < t.cols; ++i)
              ASSERT_EQ(values[row * t.cols + i], token < 0 ? 0.0 : truth[token * t.cols + i]) << target;
          }
          ASSERT_TRUE(out.intact());
        }
      }
    }
  });
}

TEST(GatherRows, GradientsSumChoicesInTheirOrder) {
  on_every_target([](const std::string& target) {
    for (const RoutingCase& c : kCases) {
      for (bool accumulate : {false, true}) {
        RowsTrial t(c, 21);
        const Operand d_out(random_values(t.routing.rows * t.cols, 6), DType::f32);
        const Values before = random_values(c.tokens * t.cols, 7);
        const auto run = [&](int32_t threads) {
          Operand d_x(c.tokens * t.cols, DType::f32);
          if (accumulate) d_x.set(before);
          gather_rows_backward({static_cast<const float*>(d_out.data()),
                                t.routing.expert_rows.data(),
                                d_x.f32(),
                                c.tokens,
                                t.cols,
                                c.choices,
                                accumulate,
                                {.threads = threads}});
          EXPECT_TRUE(d_x.intact());
          return d_x;
        };
        const Values d = d_out.values();
        Values expected = accumulate ? before : Values(before.size(), 0.0);
        for (int64_t i = 0; i < t.needed(); ++i)
          for (int64_t l = 0; l < t.cols; ++l) expected[i / c.choices * t.cols + l] += d[t.at(i) + l];
        ASSERT_NO_FATAL_FAILURE(expect_close(run(1).values(), expected, 5e-6, target + " " + c.name()));
        ASSERT_TRUE(run(1).same_bits(run(3)));
      }
    }
  });
}

Values combine_reference(const RowsTrial& t, const Values& rows, const Values& weights) {
  Values out(static_cast<size_t>(t.c.tokens * t.cols), 0.0);
  for (int64_t i = 0; i < t.needed(); ++i)
    for (int64_t l = 0; l < t.cols; ++l) out[i / t.c.choices * t.cols + l] += weights[i] * rows[t.at(i) + l];
  return out;
}

TEST(Combine, SumsWeightedRows) {
  on_every_target([](const std::string& target) {
    for (const RoutingCase& c : kCases) {
      for (DType from : kStorages) {
        for (DType to : kStorages) {
          if (!may_meet({from, to})) continue;
          RowsTrial t(c, 37);
          const Operand rows(random_values(t.routing.rows * t.cols, 8), from);
          Operand out(c.tokens * t.cols, to);
          combine({rows.in(),
                   t.routing.weights.data(),
                   t.routing.expert_rows.data(),
                   out.out(),
                   c.tokens,
                   t.cols,
                   c.choices,
                   {.threads = 2}});
          const Values weights(t.routing.weights.begin(), t.routing.weights.end());
          ASSERT_NO_FATAL_FAILURE(expect_close(out.values(), combine_reference(t, rows.values(), weights),
                                               tolerance_of(to) * 2, target + " " + c.name()));
          ASSERT_TRUE(out.intact());
        }
      }
    }
  });
}

// What a token gets where each of its experts multiplies by one more than the last, and the logits' gradient.
struct Mixed {
  Values out, d_logits;
};
Mixed mixed(const RoutingCase& c, const Operand& logits, const Operand& x, const Operand& d_out, bool normalize,
            int64_t ranks, int64_t place) {
  const int64_t cols = x.elements() / c.tokens;
  const Routing routing(c, static_cast<const float*>(logits.data()), normalize, 2, ranks, place);
  Operand rows(routing.rows * cols, DType::f32), out(c.tokens * cols, DType::f32), d_rows(rows.elements(), DType::f32),
      d_weights(c.tokens * c.choices, DType::f32), d_logits(logits.elements(), DType::f32);
  const int32_t* const at = routing.expert_rows.data();
  const Cut cut{.threads = 2};
  gather_rows({x.in(), at, routing.row_tokens.data(), rows.out(), c.tokens, cols, c.choices, routing.rows, cut});
  Values made = rows.values();
  for (size_t i = 0; i < made.size(); ++i)
    made[i] *= static_cast<double>(2 + routing.op.first_expert + routing.tile_experts[i / (cols * routing.tile)]);
  rows.set(made);
  combine({rows.in(), routing.weights.data(), at, out.out(), c.tokens, cols, c.choices, cut});
  combine_backward({.d_out = static_cast<const float*>(d_out.data()),
                    .x = rows.in(),
                    .route_weights = routing.weights.data(),
                    .expert_rows = at,
                    .row_tokens = routing.row_tokens.data(),
                    .d_x = d_rows.f32(),
                    .d_route_weights = d_weights.f32(),
                    .rows = c.tokens,
                    .cols = cols,
                    .choices = c.choices,
                    .routed_rows = routing.rows,
                    .cut = cut});
  route_backward({.d_route_weights = d_weights.f32(),
                  .route_weights = routing.weights.data(),
                  .expert_rows = at,
                  .tile_experts = routing.tile_experts.data(),
                  .logits = static_cast<const float*>(logits.data()),
                  .d_logits = d_logits.f32(),
                  .rows = c.tokens,
                  .experts = c.experts,
                  .choices = c.choices,
                  .tile = routing.tile,
                  .first_expert = routing.op.first_expert,
                  .normalize = normalize,
                  .cut = cut});
  EXPECT_TRUE(rows.intact() && out.intact() && d_rows.intact() && d_weights.intact() && d_logits.intact());
  return {out.values(), d_logits.values()};
}

TEST(Combine, WhatRanksThatSplitExpertsMakeAddsUp) {
  int splits = 0;
  for (const RoutingCase& c : kCases)
    for (const int64_t ranks : {2, 4, 8})
      for (const bool normalize : {false, true}) {
        if (c.experts % ranks != 0) continue;
        ++splits;
        const Operand logits(token_logits(c, 11), DType::f32), x(random_values(c.tokens * 24, 12), DType::f32),
            d_out(random_values(c.tokens * 24, 13), DType::f32);
        const Mixed whole = mixed(c, logits, x, d_out, normalize, 1, 0);
        Mixed sum{Values(whole.out.size(), 0.0), Values(whole.d_logits.size(), 0.0)};
        for (int64_t place = 0; place < ranks; ++place) {
          const Mixed part = mixed(c, logits, x, d_out, normalize, ranks, place);
          for (size_t i = 0; i < sum.out.size(); ++i) sum.out[i] += part.out[i];
          for (size_t i = 0; i < sum.d_logits.size(); ++i) sum.d_logits[i] += part.d_logits[i];
        }
        expect_close(sum.out, whole.out, 1e-5, "out of " + c.name());
        expect_close(sum.d_logits, whole.d_logits, 1e-4, "d_logits of " + c.name());
      }
  EXPECT_GT(splits, 6);
}

TEST(Combine, GradientsEqualCentralDifferencesAndAreZeroInPadding) {
  on_every_target([](const std::string& target) {
    for (const RoutingCase& c : kCases) {
      for (DType type : kStorages) {
        RowsTrial t(c, 19);
        const Operand rows(random_values(t.routing.rows * t.cols, 9), type);
        const Values weights(t.routing.weights.begin(), t.routing.weights.end());
        const Values d = random_values(c.tokens * t.cols, 10);
        const Operand d_out(d, DType::f32);
        Operand d_rows(t.routing.rows * t.cols, DType::f32), d_weights(t.needed(), DType::f32);
        CombineBackward op{.d_out = static_cast<const float*>(d_out.data()),
                           .x = rows.in(),
                           .route_weights = t.routing.weights.data(),
                           .expert_rows = t.routing.expert_rows.data(),
                           .row_tokens = t.routing.row_tokens.data(),
                           .d_x = d_rows.f32(),
                           .d_route_weights = d_weights.f32(),
                           .rows = c.tokens,
                           .cols = t.cols,
                           .choices = c.choices,
                           .routed_rows = t.routing.rows,
                           .cut = {.threads = 2}};
        combine_backward(op);
        ASSERT_TRUE(d_rows.intact() && d_weights.intact());
        ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(combine_reference(t, v, weights), d); },
                                                rows.values(), d_rows.values(), target + " rows " + c.name()));
        ASSERT_NO_FATAL_FAILURE(
            expect_gradient([&](const Values& v) { return dot(combine_reference(t, rows.values(), v), d); }, weights,
                            d_weights.values(), target + " weights " + c.name()));
        const Values values = d_rows.values();
        for (int64_t row = 0; row < t.routing.rows; ++row)
          for (int64_t l = 0; l < t.cols && t.routing.row_tokens[row] < 0; ++l) ASSERT_EQ(values[row * t.cols + l], 0.0);
        // Each alone.
        Operand only_rows(t.routing.rows * t.cols, DType::f32), only_weights(t.needed(), DType::f32);
        op.d_x = only_rows.f32(), op.d_route_weights = nullptr;
        combine_backward(op);
        op.d_x = nullptr, op.d_route_weights = only_weights.f32();
        combine_backward(op);
        ASSERT_TRUE(only_rows.same_bits(d_rows) && only_weights.same_bits(d_weights));
      }
    }
  });
}

TEST(Route, RoutingAndMovingRowsAllocatesNothing) {
  if (!snug::tests::watches_allocations()) GTEST_SKIP() << "the sanitizer watches";
  built_in_backend().start_threads(2);
  RowsTrial t({200, 16, 4}, 64);
  const Operand x(random_values(200 * 64, 1), DType::bf16);
  Operand rows(t.routing.rows * 64, DType::bf16), out(200 * 64, DType::bf16), d_rows(t.routing.rows * 64, DType::f32);
  Operand d_x(random_values(200 * 64, 2), DType::f32), d_weights(t.needed(), DType::f32), d_logits(200 * 16, DType::f32);
  const Cut cut{.threads = 2};
  const Routing& r = t.routing;
  Route op = t.routing.op;
  snug::tests::take_largest_allocation();
  route(op);
  gather_rows({x.in(), r.expert_rows.data(), r.row_tokens.data(), rows.out(), 200, 64, 4, r.rows, cut});
  combine({rows.in(), r.weights.data(), r.expert_rows.data(), out.out(), 200, 64, 4, cut});
  combine_backward({d_x.f32(), rows.in(), r.weights.data(), r.expert_rows.data(), r.row_tokens.data(), d_rows.f32(),
                    d_weights.f32(), 200, 64, 4, r.rows, cut});
  gather_rows_backward({d_rows.f32(), r.expert_rows.data(), d_x.f32(), 200, 64, 4, true, cut});
  route_backward({d_weights.f32(), r.weights.data(), r.expert_rows.data(), r.tile_experts.data(),
                  static_cast<const float*>(t.logits.data()), d_logits.f32(), 200, 16, 4, r.tile, 0, false, cut});
  EXPECT_LT(snug::tests::take_largest_allocation(), size_t{4096});
}

}  // namespace
}  // namespace snug::kernels::testing
