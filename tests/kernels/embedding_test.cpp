#include "base/error.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct Case {
  int64_t rows, cols, vocabulary;
  float scale = 1.0F;
};
constexpr Case kCases[] = {{1, 1, 1}, {7, 5, 3}, {33, 48, 10}, {64, 130, 100}, {9, 20, 7, 4.0F}};

std::vector<int32_t> ids_of(const Case& c) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < c.rows; ++i)
    ids.push_back(
        static_cast<int32_t>(Philox{.seed = 5}.words(static_cast<uint64_t>(i))[0] % static_cast<uint64_t>(c.vocabulary)));
  return ids;
}

Values reference(const Case& c, const Values& table) {
  Values out;
  for (int32_t id : ids_of(c)) out.insert(out.end(), table.begin() + id * c.cols, table.begin() + (id + 1) * c.cols);
  for (double& value : out) value *= static_cast<double>(c.scale);
  return out;
}

TEST(Embedding, CopiesRowsTimesTheScale) {
  on_every_target([](const std::string& target) {
    for (const Case& c : kCases) {
      for (DType table_type : kStorages) {
        for (DType out_type : kStorages) {
          if (!may_meet({table_type, out_type})) continue;
          const auto ids = ids_of(c);
          const Operand table(random_values(c.vocabulary * c.cols, 1), table_type);
          Operand out(c.rows * c.cols, out_type);
          embedding({table.in(), ids.data(), out.out(), c.rows, c.cols, c.vocabulary, c.scale, {.threads = 2}});
          ASSERT_EQ(out.values(), reference(c, table.values())) << target;  // the values are exact in both
          ASSERT_TRUE(out.intact());
        }
      }
    }
  });
}

TEST(Embedding, GradientsEqualCentralDifferencesForAnyNumberOfThreads) {
  on_every_target([](const std::string& target) {
    for (const Case& c : kCases) {
      const auto ids = ids_of(c);
      const Values table = random_values(c.vocabulary * c.cols, 1), before = random_values(c.vocabulary * c.cols, 4);
      const Values d = random_values(c.rows * c.cols, 3);
      const auto run = [&](int32_t threads) {
        Operand d_out(d, DType::f32), d_table(before, DType::f32);
        embedding_backward(
            {d_out.f32(), ids.data(), d_table.f32(), c.rows, c.cols, c.vocabulary, c.scale, -1, {.threads = threads}});
        EXPECT_TRUE(d_table.intact());
        return d_table;
      };
      Values d_table = run(1).values();
      for (size_t i = 0; i < d_table.size(); ++i) d_table[i] -= before[i];
      ASSERT_NO_FATAL_FAILURE(
          expect_gradient([&](const Values& v) { return dot(reference(c, v), d); }, table, d_table, target));
      for (int32_t threads : {1, 2, 3}) ASSERT_TRUE(run(threads).same_bits(run(1)));  // sums keep the order of rows
    }
  });
}

TEST(Embedding, RefusesTokensOutsideOfTheVocabulary) {
  Operand table(8, DType::f32), out(4, DType::f32);
  for (int32_t id : {-1, 2}) {
    EXPECT_THROW(embedding({table.in(), &id, out.out(), 1, 4, 2, 1.0F, {}}), Error);
    EXPECT_THROW(embedding_backward({out.f32(), &id, table.f32(), 1, 4, 2, 1.0F, -1, {}}), Error);
  }
}

TEST(Embedding, LeavesTheUntrainedRowsGradientAlone) {
  const std::vector<int32_t> ids = {1, 0, 1, 2};
  const Values d = random_values(4 * 20, 3);
  Operand d_out(d, DType::f32), d_table(Values(3 * 20, 0.0), DType::f32);
  embedding_backward({.d_out = d_out.f32(),
                      .ids = ids.data(),
                      .d_table = d_table.f32(),
                      .rows = 4,
                      .cols = 20,
                      .vocabulary = 3,
                      .untrained_row = 1});
  const Values sums = d_table.values();
  for (size_t j = 0; j < 20; ++j) {
    EXPECT_EQ(sums[j], d[20 + j]);
    EXPECT_EQ(sums[20 + j], 0.0);
    EXPECT_EQ(sums[40 + j], d[60 + j]);
  }
}

}  // namespace
}  // namespace snug::kernels::testing
