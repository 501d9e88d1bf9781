// Parts of a tensor, against picking its bytes one by one.

#include "formats/tensor_cut.h"

#include <gtest/gtest.h>

#include <random>

namespace snug::testing {

namespace {

TEST(TensorCut, any_bytes_of_a_part_lie_where_picking_them_one_by_one_finds_them) {
  std::mt19937 random(3);
  const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint32_t>(most)); };
  for (int i = 0; i < 300; ++i) {
    TensorCut cut{.row_bytes = 1 + below(40)};
    for (int64_t at = below(5); at < cut.row_bytes; at += 1 + below(9)) {
      const int64_t bytes = std::min(1 + below(6), cut.row_bytes - at);
      cut.stretches.push_back({at, bytes});
      at += bytes;
    }
    if (cut.stretches.empty()) cut.stretches.push_back({0, cut.row_bytes});
    const int64_t rows = 1 + below(5);
    std::vector<int64_t> picked;  // of each byte of the part, where it lies
    for (int64_t row = 0; row < rows; ++row)
      for (const TensorCut::Stretch& stretch : cut.stretches)
        for (int64_t at = 0; at < stretch.bytes; ++at) picked.push_back(row * cut.row_bytes + stretch.begin + at);
    ASSERT_EQ(static_cast<int64_t>(picked.size()), rows * cut.part_bytes());
    const int64_t begin = below(static_cast<int64_t>(picked.size()));
    const int64_t bytes = 1 + below(static_cast<int64_t>(picked.size()) - begin);
    std::vector<int64_t> found;
    cut.for_each_run(begin, bytes, [&](int64_t at, int64_t count) {
      ASSERT_GT(count, 0);
      for (int64_t k = 0; k < count; ++k) found.push_back(at + k);
    });
    ASSERT_EQ(found, std::vector<int64_t>(picked.begin() + begin, picked.begin() + begin + bytes));
  }
}

TEST(TensorCut, without_one_the_tensor_is_whole) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  for_each_run(nullptr, 7, 9, [&](int64_t at, int64_t count) { runs.emplace_back(at, count); });
  EXPECT_EQ(runs, (std::vector<std::pair<int64_t, int64_t>>{{7, 9}}));
}

}  // namespace

}  // namespace snug::testing
