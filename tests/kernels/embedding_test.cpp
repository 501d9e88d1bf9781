#include "base/error.h"
#include "kernels/row_reference.h"

namespace snug::kernels::testing {
namespace {

struct Case {
  int64_t rows, cols, vocabulary;
};
constexpr Case kCases[] = {{1, 1, 1}, {7, 5, 3}, {33, 48, 10}, {64, 130, 100}};

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
  return out;
}

TEST(Embedding, CopiesRows) {
  on_every_target([](const std::string& target) {
    for (const Case& c : kCases) {
      for (DType table_type : kStorages) {
        for (DType out_type : kStorages) {
          const auto ids = ids_of(c);
          const Operand table(random_values(c.vocabulary * c.cols, 1), table_type);
          Operand out(c.rows * c.cols, out_type);
          embedding({table.in(), ids.data(), out.out(), c.rows, c.cols, c.vocabulary, {.threads = 2}});
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
        embedding_backward({d_out.f32(), ids.data(), d_table.f32(), c.rows, c.cols, c.vocabulary, {.threads = threads}});
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
    EXPECT_THROW(embedding({table.in(), &id, out.out(), 1, 4, 2, {}}), Error);
    EXPECT_THROW(embedding_backward({out.f32(), &id, table.f32(), 1, 4, 2, {}}), Error);
  }
}

}  // namespace
}  // namespace snug::kernels::testing
