#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct Table {
  Operand cosine, sine;
  Table(int64_t rows, int64_t half, int32_t threads, float scale = 1.0F)
      : cosine(rows * half, DType::f32), sine(rows * half, DType::f32) {
    std::vector<int32_t> positions;
    std::vector<float> frequencies;
    for (int64_t i = 0; i < rows; ++i) positions.push_back(static_cast<int32_t>(i * 37 % 4096));
    for (int64_t j = 0; j < half; ++j)
      frequencies.push_back(static_cast<float>(std::pow(1e4, -static_cast<double>(j) / static_cast<double>(half))));
    rope_table({positions.data(), frequencies.data(), cosine.f32(), sine.f32(), rows, half, scale, {.threads = threads}});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < half; ++j) {
        const float angle = static_cast<float>(positions[i]) * frequencies[j];  // as Hugging Face rounds it
        EXPECT_NEAR(cosine.f32()[i * half + j], scale * std::cos(static_cast<double>(angle)), 1e-7);
        EXPECT_NEAR(sine.f32()[i * half + j], scale * std::sin(static_cast<double>(angle)), 1e-7);
      }
    }
    EXPECT_TRUE(cosine.intact() && sine.intact());
  }
};

TEST(RopeTable, IsScaled) { Table(17, 8, 1, 0.75F); }

TEST(RopeTable, IsTheSameForAnyNumberOfThreads) {
  const Table one(129, 32, 1), three(129, 32, 3);
  EXPECT_TRUE(one.cosine.same_bits(three.cosine) && one.sine.same_bits(three.sine));
}

// One row, an odd half, halves below, at and above a vector, heads that turn in part; the rotation back is its gradient.
TEST(Rope, EqualsTheFormulaAndItsGradientIsTheInverse) {
  on_every_target([](const std::string& target) {
    constexpr int64_t kShapes[][4] = {{1, 1, 2, 1},   {3, 2, 6, 3},    {5, 3, 16, 8},  {4, 9, 64, 32},
                                      {7, 1, 80, 40}, {2, 2, 128, 64}, {3, 2, 64, 24}, {2, 3, 10, 2}};
    for (const auto& [rows, heads, head_size, half] : kShapes) {
      for (int32_t threads : {1, 2, 3}) {
        Table table(rows, half, threads);
        const Values cosine = table.cosine.values(), sine = table.sine.values();
        for (DType dtype : kStorages) {
          const int64_t n = rows * heads * head_size;
          const Values x = random_values(n, 1), d = random_values(n, 2);
          const auto run = [&](const Values& from, bool inverse) {
            Operand at(from, dtype);
            rope({.x = at.out(),
                  .cosine = table.cosine.f32(),
                  .sine = table.sine.f32(),
                  .rows = rows,
                  .heads = heads,
                  .head_size = head_size,
                  .half = half,
                  .inverse = inverse,
                  .cut = {.threads = threads}});
            EXPECT_TRUE(at.intact());
            return at;
          };
          const RopeReference ahead{rows, heads, head_size, half, false}, back{rows, heads, head_size, half, true};
          ASSERT_NO_FATAL_FAILURE(expect_close(run(x, false).values(), ahead(x, cosine, sine), tolerance_of(dtype), target));
          ASSERT_NO_FATAL_FAILURE(expect_close(run(x, true).values(), back(x, cosine, sine), tolerance_of(dtype), target));
          ASSERT_TRUE(run(x, false).same_bits(run(x, false)));
          if (dtype != DType::f32) continue;  // gradients are fp32
          ASSERT_NO_FATAL_FAILURE(expect_gradient([&](const Values& v) { return dot(ahead(v, cosine, sine), d); }, x,
                                                  run(d, true).values(), target));
        }
      }
    }
  });
}

}  // namespace
}  // namespace snug::kernels::testing
