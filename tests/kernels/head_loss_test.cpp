// head_loss over shapes x dtypes x cuts: loss, every gradient, predictions, same bits, workspace and allocations.

#include <optional>

#include "base/cpu_features.h"
#include "kernels/backend.h"
#include "kernels/cpu/product.h"
#include "kernels/op_reference.h"
#include "kernels/support_allocations.h"
#include "targets/cpu/head_loss.h"

namespace snug {
namespace {

using tests::Doubles;
using tests::GuardedWorkspace;
using tests::HeadReference;
using tests::Values;

constexpr int32_t kThreads = 2;

struct Setting {
  HeadShape shape;
  int64_t targets;
  std::optional<Blocks> blocks;
  float softcap = 0;
};

// One loss with all that it touches.
struct Trial {
  HeadShape shape;
  Blocks blocks;
  float softcap;
  Values hidden, weight, low, low_weight, d_hidden, d_weight, d_low, d_low_weight;
  std::vector<int32_t> target_rows, target_tokens, predictions;
  std::vector<double> scalars = std::vector<double>(static_cast<size_t>(kScalarCount));
  HeadReference reference{};
  int64_t bytes;

  explicit Trial(const Setting& of)
      : shape(of.shape),
        blocks(of.blocks ? *of.blocks : head_loss_blocks(of.shape, kThreads)),
        softcap(of.softcap),
        hidden(shape.rows * shape.cols, shape.hidden, 1),
        weight(shape.vocabulary * shape.cols, shape.weight, 2, 0.3F),
        low(shape.rows * shape.rank, shape.low, 3),
        low_weight(shape.vocabulary * shape.rank, shape.low_weight, 4, 0.3F),
        d_hidden(hidden.size(), DType::f32, 5),
        d_weight(weight.size(), DType::f32, 6),
        d_low(low.size(), DType::f32, 7),
        d_low_weight(low_weight.size(), DType::f32, 8),
        predictions(static_cast<size_t>(shape.rows), -1),
        bytes(head_loss_workspace_bytes(shape, blocks, kThreads)) {
    const Philox random{.seed = 3, .stream = 9};
    for (int64_t i = 0; i < of.targets; ++i) {  // spread over the rows
      target_rows.push_back(static_cast<int32_t>(i * shape.rows / of.targets));
      target_tokens.push_back(static_cast<int32_t>(random.words(static_cast<uint64_t>(i))[0] % shape.vocabulary));
    }
    const double inverse = 1.0 / static_cast<double>(std::max<int64_t>(of.targets, 1) + 3);
    scalars[static_cast<size_t>(Scalar::inverse_labels)] = inverse;
    scalars[static_cast<size_t>(Scalar::loss_scale)] = 1.0;
    scalars[static_cast<size_t>(Scalar::target_count)] = static_cast<double>(of.targets);
    scalars[static_cast<size_t>(Scalar::loss_sum)] = 0.25;
    reference = {shape.cols, shape.vocabulary, shape.rank, inverse, softcap, target_rows, target_tokens};
  }
  kernels::HeadLoss op(GuardedWorkspace& workspace) {
    kernels::HeadLoss op{
        .hidden = hidden.in(),
        .weight = weight.in(),
        .low = {},
        .low_weight = {},
        .target_rows = target_rows.data(),
        .target_tokens = target_tokens.data(),
        .scalars = scalars.data(),
        .rows = shape.rows,
        .cols = shape.cols,
        .vocabulary = shape.vocabulary,
        .rank = shape.rank,
        .softcap = softcap,
        .workspace = workspace.get(),
        .cut = {.threads = kThreads, .rows = blocks.rows, .cols = blocks.cols, .arithmetic = shape.arithmetic}};
    if (shape.rank > 0) op.low = low.in();
    if (shape.rank > 0) op.low_weight = low_weight.in();
    if (shape.training) op.d_hidden = d_hidden.f32();
    if (shape.training && shape.rank > 0) op.d_low = d_low.f32();
    if (shape.weight_trained) op.d_weight = d_weight.f32();
    if (shape.low_trained) op.d_low_weight = d_low_weight.f32();
    if (!shape.training) op.predictions = predictions.data();
    return op;
  }
  void run() {
    GuardedWorkspace workspace(bytes);
    kernels::head_loss(op(workspace), tests::products());
    EXPECT_TRUE(workspace.intact());
    EXPECT_TRUE(d_hidden.guarded() && d_weight.guarded() && d_low.guarded() && d_low_weight.guarded());
  }
  double loss() const { return scalars[static_cast<size_t>(Scalar::loss_sum)] - 0.25; }
};

Doubles minus(const Values& after, const Values& before) {
  Doubles difference = after.doubles();
  for (int64_t i = 0; i < after.size(); ++i) difference[static_cast<size_t>(i)] -= before[i];
  return difference;
}

void expect_reference(const Setting& setting) {
  Trial trial(setting);
  const HeadShape& shape = trial.shape;
  const Values d_weight_before = trial.d_weight;
  const Values d_low_weight_before = trial.d_low_weight;
  trial.run();
  const Doubles hidden = trial.hidden.doubles();
  const Doubles weight = trial.weight.doubles();
  const Doubles low = trial.low.doubles();
  const Doubles low_weight = trial.low_weight.doubles();
  const HeadReference& f = trial.reference;
  const double expected = f(hidden, weight, low, low_weight);
  EXPECT_NEAR(trial.loss(), expected, 1e-5 * std::max(std::abs(expected), 0.1));
  if (!shape.training) {
    for (size_t i = 0; i < trial.target_rows.size(); ++i) {
      const Doubles x = f.logits(hidden, weight, low, low_weight, i);
      const int32_t predicted = trial.predictions[i];
      ASSERT_TRUE(predicted >= 0 && predicted < shape.vocabulary);
      EXPECT_NEAR(x[static_cast<size_t>(predicted)], *std::max_element(x.begin(), x.end()), 1e-5);
    }
    return;
  }
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (std::find(f.rows.begin(), f.rows.end(), row) != f.rows.end()) continue;
    for (int64_t c = 0; c < shape.cols; ++c) ASSERT_EQ(trial.d_hidden[row * shape.cols + c], 0.0) << "row " << row;
    for (int64_t r = 0; r < shape.rank; ++r) ASSERT_EQ(trial.d_low[row * shape.rank + r], 0.0) << "row " << row;
  }
  // In bf16 the gradients of the logits are rounded before they are multiplied, each by 2^-8 at most.
  const double relative = shape.arithmetic == Arithmetic::bf16 ? 0x1p-8 : 1e-3;
  const auto expect_slope = [&](const auto& loss, const Doubles& x, const Doubles& gradient, uint64_t stream) {
    tests::expect_slope(loss, x, gradient, stream, relative);
  };
  expect_slope([&](const Doubles& x) { return f(x, weight, low, low_weight); }, hidden, trial.d_hidden.doubles(), 1);
  if (shape.weight_trained) {
    expect_slope([&](const Doubles& x) { return f(hidden, x, low, low_weight); }, weight,
                 minus(trial.d_weight, d_weight_before), 2);
  }
  if (shape.rank > 0) {
    expect_slope([&](const Doubles& x) { return f(hidden, weight, x, low_weight); }, low, trial.d_low.doubles(), 3);
  }
  if (shape.low_trained) {
    expect_slope([&](const Doubles& x) { return f(hidden, weight, low, x); }, low_weight,
                 minus(trial.d_low_weight, d_low_weight_before), 4);
  }
}

// Rows and panels below, at and above their blocks; all rows predicted, some, one, none.
std::vector<Setting> settings(DType hidden, DType weight, DType lows, Arithmetic arithmetic) {
  const auto shape = [&](int64_t rows, int64_t cols, int64_t vocabulary, int64_t rank, bool training, bool weights,
                         bool low_trained) {
    return HeadShape{.rows = rows,
                     .cols = cols,
                     .vocabulary = vocabulary,
                     .rank = rank,
                     .hidden = hidden,
                     .weight = weight,
                     .low = lows,
                     .low_weight = lows,
                     .training = training,
                     .weight_trained = weights,
                     .low_trained = low_trained,
                     .arithmetic = arithmetic};
  };
  return {
      {shape(37, 20, 131, 0, true, true, false), 37, Blocks{16, 64, 0}},
      {shape(40, 33, 128, 0, true, false, false), 32, Blocks{16, 64, 0}},
      {shape(40, 33, 127, 5, true, true, true), 33, Blocks{16, 64, 0}},
      {shape(40, 64, 65, 8, true, false, true), 31, Blocks{16, 64, 0}},
      {shape(21, 17, 200, 3, true, false, false), 1, Blocks{32, 0, 0}},
      {shape(21, 17, 50, 0, true, true, false), 0, std::nullopt},
      {shape(70, 48, 700, 4, true, true, true), 60, std::nullopt},
      {shape(70, 48, 700, 4, false, false, false), 60, std::nullopt},
      {shape(70, 20, 131, 0, false, false, false), 49, Blocks{16, 64, 0}},
      {shape(3, 1, 1, 0, true, true, false), 2, std::nullopt},
      {shape(96, 64, 100, 0, true, true, false), 51, Blocks{96, 64, 0}},
      {shape(96, 64, 128, 0, true, true, false), 96, Blocks{64, 64, 0}},
      {shape(96, 64, 130, 0, false, false, false), 95, Blocks{96, 128, 0}},
      {shape(40, 33, 127, 5, true, true, true), 33, Blocks{16, 64, 0}, 3.0F},
      {shape(70, 48, 700, 0, true, true, false), 60, std::nullopt, 2.0F},
      {shape(40, 33, 127, 5, true, false, false), 33, Blocks{16, 64, 0}, 3.0F},
      {shape(70, 48, 700, 0, true, false, false), 60, std::nullopt, 2.0F},
      {shape(96, 64, 130, 0, true, false, false), 95, Blocks{96, 128, 0}},
      {shape(70, 48, 700, 4, true, false, false), 60, std::nullopt},
      {shape(70, 48, 700, 0, false, false, false), 60, std::nullopt, 2.0F},
  };
}

struct Variant {
  DType hidden, weight, lows;
  Arithmetic arithmetic;
};

TEST(HeadLoss, MatchesTheReferenceAndItsSlopes) {
  constexpr DType kF32 = DType::f32, kBf16 = DType::bf16, kF16 = DType::f16;
  std::vector<Variant> variants = {{kF32, kF32, kF32, Arithmetic::fp32},
                                   {kF32, kBf16, kF32, Arithmetic::fp32},
                                   {kBf16, kF32, kF32, Arithmetic::fp32},
                                   {kBf16, kBf16, kBf16, Arithmetic::fp32},
                                   {kF16, kF16, kF32, Arithmetic::fp32}};
  if (multiplies_bf16()) {
    variants.push_back({kBf16, kBf16, kF32, Arithmetic::bf16});
    variants.push_back({kBf16, kBf16, kBf16, Arithmetic::bf16});
    variants.push_back({kF16, kF16, kF32, Arithmetic::bf16_pieces});
    variants.push_back({kF16, kF16, kF16, Arithmetic::bf16_pieces});
  }
  for (const auto& [hidden, weight, lows, arithmetic] : variants) {
    for (Setting setting : settings(hidden, weight, lows, arithmetic)) {
      if (!setting.blocks) setting.blocks = head_loss_blocks(setting.shape, kThreads);
      if (setting.blocks->cols == 0) setting.blocks->cols = setting.shape.vocabulary;
      SCOPED_TRACE(std::to_string(setting.shape.rows) + " rows, " + std::to_string(setting.shape.cols) +
                   " wide, vocabulary " + std::to_string(setting.shape.vocabulary) + ", rank " +
                   std::to_string(setting.shape.rank) + ", targets " + std::to_string(setting.targets) + ", weight " +
                   std::string(name_of(weight)) + (arithmetic == Arithmetic::fp32 ? "" : ", in bf16"));
      expect_reference(setting);
    }
  }
}

TEST(HeadLoss, PredictsTheFirstOfEqualTokens) {
  Trial trial({{.rows = 4, .cols = 8, .vocabulary = 300, .training = false}, 4, Blocks{16, 64, 0}});
  for (int64_t i = 0; i < trial.weight.size(); ++i) trial.weight.set(i, 0.0F);
  for (const int64_t v : {70, 71, 140}) {
    for (int64_t c = 0; c < 8; ++c) trial.weight.set(v * 8 + c, trial.hidden[c] > 0 ? 1.0F : -1.0F);
  }
  for (int64_t i = 0; i < trial.hidden.size(); ++i) trial.hidden.set(i, static_cast<float>(trial.hidden[i % 8]));
  trial.run();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(trial.predictions[static_cast<size_t>(i)], 70);
}

TEST(HeadLoss, SurvivesLargeLogits) {
  Trial trial({{.rows = 8, .cols = 16, .vocabulary = 100}, 8, std::nullopt});
  for (int64_t i = 0; i < trial.hidden.size(); ++i) trial.hidden.set(i, static_cast<float>(trial.hidden[i]) * 1000.0F);
  trial.run();
  const double expected = trial.reference(trial.hidden.doubles(), trial.weight.doubles(), {}, {});
  EXPECT_NEAR(trial.loss(), expected, 1e-5 * expected);
}

// d loss / d hidden of one target, as the sum over other tokens of their share times what their weights differ by.
Doubles slope_of_others(const Trial& trial, size_t target) {
  const HeadReference& f = trial.reference;
  const Doubles weight = trial.weight.doubles();
  const auto at = [&](int64_t token, int64_t c) { return weight[static_cast<size_t>(token * f.cols + c)]; };
  const Doubles x = f.logits(trial.hidden.doubles(), weight, {}, {}, target);
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  Doubles slope(static_cast<size_t>(f.cols));
  for (int64_t v = 0; v < f.vocabulary; ++v) {
    const double power = std::exp(x[static_cast<size_t>(v)] - most);
    sum += power;
    for (int64_t c = 0; c < f.cols; ++c) slope[static_cast<size_t>(c)] += power * (at(v, c) - at(f.tokens[target], c));
  }
  for (double& value : slope) value *= f.inverse_labels / sum;
  return slope;
}

// The gradient of a token that the model is sure of is small, below what rounding adds to a share near 1.
TEST(HeadLoss, ConfidentTargetsKeepTheirSlopes) {
  std::vector<Arithmetic> arithmetics = {Arithmetic::fp32};
  if (multiplies_bf16()) arithmetics.push_back(Arithmetic::bf16);
  constexpr int64_t kRows = 32, kCols = 64, kTarget = 150;
  for (const Arithmetic arithmetic : arithmetics) {
    for (const bool weight_trained : {false, true}) {
      const HeadShape shape{.rows = kRows,
                            .cols = kCols,
                            .vocabulary = 200,
                            .hidden = DType::bf16,
                            .weight = DType::bf16,
                            .weight_trained = weight_trained,
                            .arithmetic = arithmetic};
      Trial trial({shape, kRows, Blocks{32, 64, 0}});
      trial.target_tokens.assign(kRows, kTarget);
      trial.reference.tokens = trial.target_tokens;
      for (int64_t i = 0; i < trial.weight.size(); ++i)
        trial.weight.set(i, i / kCols == kTarget ? 1.0F : 0.05F * static_cast<float>(i / kCols * 7 % 11 - i % kCols % 5));
      for (int64_t i = 0; i < trial.hidden.size(); ++i)
        trial.hidden.set(i, 0.3F + 0.02F * static_cast<float>(trial.hidden[i]));
      trial.run();
      EXPECT_LT(trial.loss(), 0.01);
      for (size_t r = 0; r < kRows; ++r) {
        const Doubles slope = slope_of_others(trial, r);
        double off = 0, norm = 0;
        for (size_t c = 0; c < kCols; ++c) {
          off += std::pow(trial.d_hidden[static_cast<int64_t>(r * kCols + c)] - slope[c], 2);
          norm += slope[c] * slope[c];
        }
        // Shares are rounded by 2^-8 each, beside weights of 0.5 at most and a target's of 1, which differ by 0.5 at least.
        // A trained head's target is rounded too, and in fp32 its share - 1 is off by 2^-24.
        const double most = arithmetic == Arithmetic::bf16 ? (weight_trained ? 3 : 1) * 0x1p-8
                            : weight_trained               ? 1e-2
                                                           : 1e-5;
        EXPECT_LE(std::sqrt(off / norm), most) << "row " << r << (weight_trained ? ", trained" : ", frozen");
      }
    }
  }
}

TEST(HeadLoss, TwoRunsGiveTheSameBits) {
  for (const bool weight_trained : {false, true}) {
    const Setting setting{{.rows = 90,
                           .cols = 40,
                           .vocabulary = 333,
                           .hidden = DType::bf16,
                           .weight = DType::bf16,
                           .weight_trained = weight_trained,
                           .arithmetic = multiplies_bf16() ? Arithmetic::bf16 : Arithmetic::fp32},
                          80,
                          Blocks{32, 128, 0}};
    Trial one(setting);
    Trial two(setting);
    one.run();
    two.run();
    EXPECT_EQ(one.scalars, two.scalars);
    EXPECT_TRUE(one.d_hidden.same_bits(two.d_hidden));
    EXPECT_TRUE(one.d_weight.same_bits(two.d_weight));
  }
}

TEST(HeadLoss, AllocatesNothingAfterPrepare) {
  if (!tests::watches_allocations()) GTEST_SKIP() << "the sanitizer watches";
  kernels::built_in_backend().start_threads(kThreads);
  for (const DType weight : {DType::f32, DType::bf16, DType::f16}) {
    Trial trial(
        {{.rows = 300, .cols = 300, .vocabulary = 3000, .weight = weight, .weight_trained = true}, 250, std::nullopt});
    GuardedWorkspace workspace(trial.bytes);
    const kernels::HeadLoss op = trial.op(workspace);
    kernels::prepare(op, tests::products());
    const int64_t made = tests::products().count();
    tests::take_largest_allocation();
    kernels::head_loss(op, tests::products());
    EXPECT_LT(tests::take_largest_allocation(), size_t{4096});
    EXPECT_EQ(tests::products().count(), made);
  }
}

}  // namespace
}  // namespace snug
