// cached_attention against plain loops in fp64: windows, soft caps, grouped heads, both dtypes, several rows, any positions.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "kernels/op_reference.h"
#include "kernels/support_allocations.h"
#include "targets/cpu/attention.h"

namespace snug::kernels::testing {
namespace {

using tests::Doubles;
using tests::GuardedWorkspace;
using tests::Values;

struct Case {
  int64_t rows, first, capacity, heads, kv_heads, head_size;
  int64_t window = 0;
  float softcap = 0;
  DType storage = DType::f32;  // of q, k, v and out
  DType cache = DType::f32;
  int32_t threads = 2;
  int64_t ahead = 0;  // so many first rows stand behind all others, as those that fill a step up
};

std::string name_of(const Case& c) {
  return std::to_string(c.rows) + " rows from " + std::to_string(c.first) + " of " + std::to_string(c.capacity) + " H" +
         std::to_string(c.heads) + " K" + std::to_string(c.kv_heads) + " D" + std::to_string(c.head_size) + " window " +
         std::to_string(c.window) + " cap " + std::to_string(c.softcap) + " " + std::string(snug::name_of(c.storage)) + " " +
         std::string(snug::name_of(c.cache));
}

// Operands of a call; the caches are full of numbers, those behind the last position included.
struct Trial {
  const Case c;
  Values q, k, v, key_cache, value_cache, out;
  std::vector<int32_t> positions;

  explicit Trial(const Case& of)
      : c(of),
        q(c.rows * c.heads * c.head_size, c.storage, 1),
        k(c.rows * c.kv_heads * c.head_size, c.storage, 2),
        v(c.rows * c.kv_heads * c.head_size, c.storage, 3),
        key_cache(c.capacity * c.kv_heads * c.head_size, c.cache, 4),
        value_cache(c.capacity * c.kv_heads * c.head_size, c.cache, 5),
        out(c.rows * c.heads * c.head_size, c.storage, 6) {
    for (int64_t i = 0; i < c.rows; ++i)
      positions.push_back(static_cast<int32_t>(c.first + i + (i < c.ahead ? c.rows - c.ahead : -c.ahead)));
  }
  float scale() const { return 2.0F / std::sqrt(static_cast<float>(c.head_size)); }
  CachedAttentionShape shape() const {
    const bool half = c.storage == DType::bf16 && c.cache == DType::bf16 && c.head_size % 32 == 0;
    return {.rows = c.rows,
            .capacity = c.capacity,
            .heads = c.heads,
            .head_size = c.head_size,
            .arithmetic = half && multiplies_bf16() ? Arithmetic::bf16 : Arithmetic::fp32};
  }
  Cut cut() const {
    if (!shape().in_blocks()) return {.threads = c.threads};
    const Blocks blocks = attention_blocks(c.rows, c.head_size);
    return {.threads = c.threads, .rows = blocks.rows, .cols = blocks.cols, .arithmetic = shape().arithmetic};
  }
  int64_t bytes() const { return cached_attention_workspace_bytes(shape(), c.threads); }

  CachedAttention op(GuardedWorkspace& workspace) {
    return {.q = q.in(),
            .k = k.in(),
            .v = v.in(),
            .positions = positions.data(),
            .key_cache = key_cache.out(),
            .value_cache = value_cache.out(),
            .out = out.out(),
            .rows = c.rows,
            .capacity = c.capacity,
            .heads = c.heads,
            .kv_heads = c.kv_heads,
            .head_size = c.head_size,
            .scale = scale(),
            .softcap = c.softcap,
            .window = c.window,
            .workspace = workspace.get(),
            .cut = cut()};
  }
  void run() {
    GuardedWorkspace workspace(bytes());
    cached_attention(op(workspace));
    EXPECT_TRUE(workspace.intact());
    EXPECT_TRUE(key_cache.guarded() && value_cache.guarded() && out.guarded());
  }
};

// What the caches should hold afterwards: rows at their positions, rounded to the cache's dtype, all else as before.
Doubles stored(const Trial& t, const Values& before, const Values& rows) {
  Values expected = before;
  const int64_t cols = t.c.kv_heads * t.c.head_size;
  for (int64_t i = 0; i < t.c.rows * cols; ++i)
    expected.set(t.positions[static_cast<size_t>(i / cols)] * cols + i % cols, static_cast<float>(rows[i]));
  return expected.doubles();
}

double attended(const Trial& t, const Doubles& keys, const Doubles& values, int64_t row, int64_t head, int64_t d) {
  const Case& c = t.c;
  const int64_t kv = head / (c.heads / c.kv_heads), last = t.positions[static_cast<size_t>(row)];
  const int64_t first = c.window > 0 ? std::max<int64_t>(0, last - c.window + 1) : 0;
  const auto at = [&](int64_t key, int64_t j) { return static_cast<size_t>((key * c.kv_heads + kv) * c.head_size + j); };
  double total = 0, sum = 0;
  for (int64_t key = first; key <= last; ++key) {
    double score = 0;
    for (int64_t j = 0; j < c.head_size; ++j) score += t.q[(row * c.heads + head) * c.head_size + j] * keys[at(key, j)];
    score *= static_cast<double>(t.scale());
    if (c.softcap > 0) score = static_cast<double>(c.softcap) * std::tanh(score / static_cast<double>(c.softcap));
    total += std::exp(score);
    sum += std::exp(score) * values[at(key, d)];
  }
  return sum / total;
}

class CachedAttentionOf : public ::testing::TestWithParam<Case> {};

TEST_P(CachedAttentionOf, stores_its_rows_and_equals_the_reference) {
  const Case& c = GetParam();
  SCOPED_TRACE(name_of(c));
  Trial t(c);
  const Values keys_before = t.key_cache, values_before = t.value_cache;
  t.run();
  const Doubles keys = stored(t, keys_before, t.k), values = stored(t, values_before, t.v);
  ASSERT_EQ(t.key_cache.doubles(), keys);
  ASSERT_EQ(t.value_cache.doubles(), values);
  const double rounding = c.storage == DType::f32 ? 2e-5 : c.storage == DType::bf16 ? 0x1p-8 : 0x1p-10;
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t head = 0; head < c.heads; ++head)
      for (int64_t d = 0; d < c.head_size; ++d) {
        const double want = attended(t, keys, values, row, head, d);
        ASSERT_NEAR(t.out[(row * c.heads + head) * c.head_size + d], want, rounding * (1 + std::abs(want)))
            << "row " << row << " head " << head;
      }
}

constexpr DType kBf16 = DType::bf16, kF16 = DType::f16, kF32 = DType::f32;
INSTANTIATE_TEST_SUITE_P(
    all, CachedAttentionOf,
    ::testing::Values(Case{1, 0, 1, 1, 1, 4},                                 // the first token
                      Case{1, 30, 31, 4, 2, 64}, Case{1, 63, 100, 9, 3, 64},  // decodes
                      Case{1, 40, 64, 4, 4, 12}, Case{1, 17, 20, 2, 1, 80}, Case{1, 200, 256, 2, 1, 128},
                      Case{1, 33, 40, 2, 1, 256}, Case{7, 0, 16, 4, 2, 16}, Case{7, 9, 16, 4, 2, 16},  // chunks
                      Case{33, 5, 64, 4, 2, 24}, Case{40, 100, 140, 3, 1, 32}, Case{1, 50, 64, 4, 2, 16, 8},
                      Case{12, 0, 16, 4, 2, 16, 5},  // windows
                      Case{12, 3, 16, 2, 1, 16, 1}, Case{4, 2, 16, 2, 1, 16, 100}, Case{5, 20, 32, 2, 1, 16, 0, 2.0F},
                      Case{5, 20, 32, 2, 1, 16, 7, 1.5F}, Case{3, 20, 32, 4, 2, 64, 0, 0, kBf16, kBf16},
                      Case{1, 31, 32, 4, 2, 20, 9, 3.0F, kBf16, kBf16}, Case{3, 20, 32, 4, 2, 64, 0, 0, kF32, kBf16},
                      Case{3, 20, 32, 4, 2, 64, 0, 0, kBf16, kF32}, Case{3, 20, 32, 4, 2, 64, 0, 0, kF16, kF16},
                      Case{1, 31, 32, 4, 2, 20, 9, 3.0F, kF32, kF16}, Case{5, 20, 32, 4, 2, 64, 0, 0, kF32, kF32, 1},
                      Case{5, 20, 32, 4, 2, 64, 0, 0, kF32, kF32, 7},  // rows behind the others, few and many
                      Case{5, 20, 32, 4, 2, 64, 0, 0, kF32, kF32, 2, 2}, Case{64, 0, 80, 4, 2, 64, 0, 0, kF32, kF32, 2, 7},
                      Case{128, 3, 140, 3, 1, 24, 9, 2.0F, kF32, kF32, 3, 60},
                      Case{128, 40, 168, 2, 1, 64, 0, 0, kBf16, kBf16, 2, 31},
                      Case{200, 0, 240, 2, 2, 32, 50, 3.0F, kBf16, kBf16, 3, 100},
                      Case{40, 70, 120, 4, 1, 128, 0, 0, kF16, kF16, 2, 0}));

TEST(CachedAttention, has_the_same_bits_on_any_number_of_threads) {
  Trial one({40, 20, 64, 5, 1, 48, 30, 2.0F, kBf16, kBf16, 1}), three({40, 20, 64, 5, 1, 48, 30, 2.0F, kBf16, kBf16, 3});
  one.run();
  three.run();
  EXPECT_TRUE(one.out.same_bits(three.out));
  EXPECT_TRUE(one.key_cache.same_bits(three.key_cache));
}

TEST(CachedAttention, a_chunk_gives_what_its_rows_give_one_by_one) {
  Trial chunk({6, 10, 32, 4, 2, 32});
  chunk.run();
  Trial single({6, 10, 32, 4, 2, 32});
  GuardedWorkspace workspace(single.bytes());
  CachedAttention op = single.op(workspace);
  const int64_t q_bytes = 4 * 32 * 4, kv_bytes = 2 * 32 * 4;
  for (op.rows = 1; op.positions < single.positions.data() + 6; ++op.positions) {
    cached_attention(op);
    op.q.data = static_cast<const char*>(op.q.data) + q_bytes;
    op.out.data = static_cast<char*>(op.out.data) + q_bytes;
    op.k.data = static_cast<const char*>(op.k.data) + kv_bytes;
    op.v.data = static_cast<const char*>(op.v.data) + kv_bytes;
  }
  EXPECT_TRUE(chunk.out.same_bits(single.out));
}

TEST(CachedAttention, refuses_positions_outside_of_the_cache) {
  for (const int32_t wrong : {-1, 16, 1 << 30}) {
    Trial t({2, 3, 16, 2, 1, 8});
    t.positions[1] = wrong;
    GuardedWorkspace workspace(t.bytes());
    EXPECT_THROW(cached_attention(t.op(workspace)), Error) << wrong;
  }
}

TEST(CachedAttention, refuses_less_workspace_than_its_rule_states) {
  Trial t({2, 3, 16, 2, 1, 8});
  GuardedWorkspace workspace(t.bytes() - 64);
  EXPECT_THROW(cached_attention(t.op(workspace)), Error);
}

TEST(CachedAttention, allocates_nothing) {
  if (!tests::watches_allocations()) GTEST_SKIP() << "the sanitizer watches";
  built_in_backend().start_threads(2);
  Trial t({40, 3, 64, 4, 2, 64});
  GuardedWorkspace workspace(t.bytes());
  const CachedAttention op = t.op(workspace);
  cached_attention(op);
  tests::take_largest_allocation();
  cached_attention(op);
  EXPECT_LT(tests::take_largest_allocation(), size_t{4096});
}

}  // namespace
}  // namespace snug::kernels::testing
