#include "base/error.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

constexpr int64_t kShapes[][2] = {{1, 1}, {3, 17}, {40, 64}, {129, 130}};

TEST(Bias, IsAddedToEveryRowAndItsGradientIsTheColumnSums) {
  on_every_target([](const std::string& target) {
    for (const auto& [rows, cols] : kShapes) {
      for (DType storage : kStorages) {
        for (int32_t threads : {1, 2, 3}) {
          const Values values = random_values(rows * cols, 1), bias = random_values(cols, 2);
          Operand x(values, storage);
          const Operand b(bias, storage);
          add_bias({x.out(), b.in(), rows, cols, {.threads = threads}});
          Values expected = values;
          for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % static_cast<size_t>(cols)];
          ASSERT_NO_FATAL_FAILURE(expect_close(x.values(), expected, tolerance_of(storage), target));

          const Values before = random_values(cols, 3);
          Operand d_bias(before, DType::f32), d_out(values, DType::f32);
          const int64_t bytes = threads * cols * 4;
          Operand workspace = workspace_of(bytes);
          bias_backward({d_out.f32(), d_bias.f32(), rows, cols, as_workspace(workspace, bytes), {.threads = threads}});
          Values sums = before;
          for (size_t i = 0; i < values.size(); ++i) sums[i % static_cast<size_t>(cols)] += values[i];
          ASSERT_NO_FATAL_FAILURE(expect_close(d_bias.values(), sums, 1e-5, target));
          ASSERT_TRUE(x.intact() && d_bias.intact() && workspace.intact());
        }
      }
    }
  });
}

TEST(Bias, RefusesAWorkspaceThatIsTooSmall) {
  BiasBackward op;
  op.cols = 4;
  EXPECT_THROW(bias_backward(op), Error);
}

// Two parts and three, of unequal widths.
TEST(Columns, SplitAndJoinAreEachOthersInverse) {
  for (DType dtype : kStorages) {
    for (const std::vector<int64_t>& widths : {std::vector<int64_t>{3, 5}, {64, 32, 32}, {1, 1, 7}}) {
      constexpr int64_t kRows = 11;
      int64_t width = 0;
      for (int64_t cols : widths) width += cols;
      const Values values = random_values(kRows * width, 1);
      Operand whole(values, dtype), again(kRows * width, dtype);
      std::vector<Operand> parts;
      ColumnParts op{.whole = whole.data(), .dtype = dtype, .rows = kRows, .cut = {.threads = 2}};
      for (size_t i = 0; i < widths.size(); ++i) {
        parts.emplace_back(kRows * widths[i], dtype);
        op.parts[i] = {parts.back().data(), widths[i]};
      }
      split(op);
      int64_t first = 0;
      for (size_t i = 0; i < widths.size(); ++i) {
        const Values part = parts[i].values();
        for (int64_t row = 0; row < kRows; ++row)
          for (int64_t j = 0; j < widths[i]; ++j)
            ASSERT_EQ(part[static_cast<size_t>(row * widths[i] + j)], values[static_cast<size_t>(row * width + first + j)]);
        ASSERT_TRUE(parts[i].intact());
        first += widths[i];
      }
      op.whole = again.data();
      join(op);
      ASSERT_TRUE(again.same_bits(whole) && again.intact());
    }
  }
}

}  // namespace
}  // namespace snug::kernels::testing
