#include "data/packing.h"

#include <numeric>
#include <set>

#include "base/philox.h"
#include "tokenizer/support.h"

namespace snug {
namespace {

std::vector<int32_t> random_lengths(uint64_t seed, size_t count, int32_t longest) {
  const Philox random{seed, 1};
  std::vector<int32_t> lengths(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t word = random.words(i)[0];
    lengths[i] = 1 + static_cast<int32_t>(word % static_cast<uint32_t>((i % 3 == 0) ? longest : std::max(1, longest / 5)));
  }
  return lengths;
}

TEST(Packing, PutsEveryDocumentInExactlyOneRowThatHasRoom) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto seq_len = static_cast<int32_t>(1 + seed * 7 % 129);
    const auto lengths = random_lengths(seed, static_cast<size_t>(seed * 11 % 500), seq_len);
    const PackedRows packed = pack(lengths, seq_len);
    std::set<int32_t> seen;
    for (int64_t r = 0; r < packed.rows(); ++r) {
      int64_t tokens = 0;
      for (int64_t i = packed.first[static_cast<size_t>(r)]; i < packed.first[static_cast<size_t>(r) + 1]; ++i) {
        const int32_t document = packed.documents[static_cast<size_t>(i)];
        EXPECT_TRUE(seen.insert(document).second);
        tokens += lengths[static_cast<size_t>(document)];
      }
      EXPECT_GT(tokens, 0);
      EXPECT_LE(tokens, seq_len);
    }
    EXPECT_EQ(seen.size(), lengths.size());
  }
}

TEST(Packing, OrdersRowsByTheirFirstDocumentAndDocumentsByTheirPlace) {
  const auto lengths = random_lengths(3, 400, 64);
  const PackedRows packed = pack(lengths, 64);
  int32_t last_first = -1;
  for (int64_t r = 0; r < packed.rows(); ++r) {
    const auto begin = packed.documents.begin() + packed.first[static_cast<size_t>(r)];
    const auto end = packed.documents.begin() + packed.first[static_cast<size_t>(r) + 1];
    EXPECT_TRUE(std::is_sorted(begin, end));
    EXPECT_GT(*begin, last_first);
    last_first = *begin;
  }
}

TEST(Packing, UsesNoMoreRowsThanTheBoundOfBestFitDecreasing) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto lengths = random_lengths(seed, 1000, 512);
    const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    // 11/9 of the optimum and 6/9 more; the optimum is at least tokens / seq_len.
    EXPECT_LE(pack(lengths, 512).rows() * 9, 11 * (tokens / 512 + 1) + 6 + 9);
  }
}

TEST(Packing, TakesTheFullestRowThatFits) {
  // 7 and 6 open rows with 3 and 4 left; 3 goes to the first, 4 to the second, 1 to a row of its own.
  const std::vector<int32_t> lengths = {7, 6, 3, 4, 1};
  const PackedRows packed = pack(lengths, 10);
  EXPECT_EQ(packed.first, (std::vector<int64_t>{0, 2, 4, 5}));
  EXPECT_EQ(packed.documents, (std::vector<int32_t>{0, 2, 1, 3, 4}));
}

TEST(Packing, RefusesLengthsThatFitNoRow) {
  EXPECT_NE(test::refusal([] { pack(std::vector<int32_t>{11}, 10); }), "");
  EXPECT_NE(test::refusal([] { pack(std::vector<int32_t>{0}, 10); }), "");
  EXPECT_EQ(pack(std::vector<int32_t>{}, 10).rows(), 0);
}

}  // namespace
}  // namespace snug
