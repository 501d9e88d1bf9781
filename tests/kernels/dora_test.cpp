#include "base/error.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

constexpr int64_t kShapes[][3] = {{1, 1, 1}, {5, 17, 2}, {130, 64, 3}, {300, 1029, 4}, {3, 2050, 0}};  // out, in, rank

int64_t workspace_bytes(bool input_first, int64_t rank, int32_t threads) {
  return 4 * threads * (input_first ? (kDoraColumns + 1) * rank + 3 * kDoraColumns : kDoraPanel);
}

TEST(Dora, NormsAreTheLengthsOfTheRowsOfTheWeightWithTheAdapterAdded) {
  on_every_target([](const std::string& target) {
    for (const auto& [rows, cols, rank] : kShapes)
      for (const DType storage : kStorages)
        for (const bool input_first : {false, true})
          for (const int32_t threads : {1, 3}) {
            const Values w = random_values(rows * cols, 1), a = random_values(rank * cols, 2),
                         b = random_values(rows * rank, 3);
            const Operand weight(w, storage);
            Operand left(a, DType::f32), right(b, DType::f32), norm(rows, DType::f32);
            const int64_t bytes = workspace_bytes(input_first, rank, threads);
            Operand workspace = workspace_of(bytes);
            DoraNorm op{.weight = weight.in(), .norm = norm.f32(), .rows = rows, .cols = cols, .rank = rank, .scale = 0.5F};
            if (rank > 0) op.a = left.f32(), op.b = right.f32();
            op.input_features_first = input_first;
            op.workspace = as_workspace(workspace, bytes);
            op.cut.threads = threads;
            dora_norm(op);
            Values expected;
            for (int64_t o = 0; o < rows; ++o) {
              double squares = 0;
              for (int64_t i = 0; i < cols; ++i) {
                double value = w[static_cast<size_t>(input_first ? i * rows + o : o * cols + i)];
                for (int64_t r = 0; r < rank; ++r)
                  value += 0.5 * b[static_cast<size_t>(o * rank + r)] * a[static_cast<size_t>(r * cols + i)];
                squares += value * value;
              }
              expected.push_back(std::sqrt(squares));
            }
            ASSERT_NO_FATAL_FAILURE(expect_close(norm.values(), expected, 1e-6, target));
            ASSERT_TRUE(norm.intact() && workspace.intact());
          }
  });
}

TEST(Dora, ColumnsAreScaledAndTheirGradientsAreTheSlopes) {
  on_every_target([](const std::string& target) {
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {7, 19}, {65, 128}})
      for (const DType storage : kStorages)
        for (const int32_t threads : {1, 2, 3}) {
          const Values input = random_values(rows * cols, 1), m = random_values(cols, 2),
                       slope = random_values(rows * cols, 3);
          Values lengths = random_values(cols, 4);
          for (double& length : lengths) length = std::abs(length) + 0.5;
          const auto scaled = [&](const Values& x, const Values& magnitude) {
            Values out = x;
            for (size_t i = 0; i < out.size(); ++i)
              out[i] *= magnitude[i % static_cast<size_t>(cols)] / lengths[i % static_cast<size_t>(cols)];
            return out;
          };
          const Operand x(input, storage);
          Operand magnitude(m, DType::f32), norm(lengths, DType::f32), out(rows * cols, storage);
          Operand workspace = workspace_of(4 * cols), more = workspace_of(4 * (threads + 1) * cols);
          scale_columns({x.in(),
                         magnitude.f32(),
                         norm.f32(),
                         out.out(),
                         rows,
                         cols,
                         as_workspace(workspace, 4 * cols),
                         {.threads = threads}});
          ASSERT_NO_FATAL_FAILURE(expect_close(out.values(), scaled(input, m), tolerance_of(storage), target));

          const Values before = random_values(cols, 5);
          Operand d_out(slope, DType::f32), d_x(rows * cols, DType::f32), d_m(before, DType::f32);
          ScaleColumnsBackward back{d_out.f32(),
                                    x.in(),
                                    magnitude.f32(),
                                    norm.f32(),
                                    d_x.f32(),
                                    d_m.f32(),
                                    rows,
                                    cols,
                                    as_workspace(more, 4 * (threads + 1) * cols),
                                    {.threads = threads}};
          scale_columns_backward(back);
          ASSERT_TRUE(out.intact() && d_x.intact() && d_m.intact() && workspace.intact() && more.intact());
          Values d_magnitude = d_m.values();
          for (size_t j = 0; j < d_magnitude.size(); ++j) d_magnitude[j] -= before[j];
          ASSERT_NO_FATAL_FAILURE(
              expect_gradient([&](const Values& v) { return dot(scaled(v, m), slope); }, input, d_x.values(), target));
          ASSERT_NO_FATAL_FAILURE(
              expect_gradient([&](const Values& v) { return dot(scaled(input, v), slope); }, m, d_magnitude, target));
          back.d_x = d_out.f32();  // in place
          back.d_magnitude = d_m.f32();
          scale_columns_backward(back);
          ASSERT_TRUE(d_out.same_bits(d_x));
        }
  });
}

TEST(Dora, RefusesAWorkspaceThatIsTooSmall) {
  EXPECT_THROW(dora_norm({.rows = 1, .cols = 1}), Error);
  EXPECT_THROW(scale_columns({.rows = 1, .cols = 1}), Error);
  EXPECT_THROW(scale_columns_backward({.rows = 1, .cols = 1}), Error);
}

}  // namespace
}  // namespace snug::kernels::testing
