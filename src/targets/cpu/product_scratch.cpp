// What oneDNN 2.6's fp32 matrix product (brgemm, AVX-512) asks for as scratchpad, so that a plan made on any machine can
// state it. It books, for each thread: 512 bytes of block addresses; one panel of b of at most 512 or 1024 by 64 unless b is
// packed or plain enough to be read in place; and, where it adds to c and needs several blocks of the summed dimension, the
// block of c in progress. Only the last depends on how it cuts the rows, which it does by a score; `row_block` follows that
// score.

#include <algorithm>

#include "base/checked.h"
#include "targets/cpu/products.h"

namespace snug {

using blocks::blocks_of;
using blocks::kFloat;

namespace {

constexpr int64_t kPanelCols = 64;
constexpr int64_t kBooking = 128;  // what each booked part may lose to alignment

// How far `work` is from a multiple of `parts`, as a share of `parts`.
float unevenness(int64_t work, int64_t parts) {
  const int64_t over = work % parts;
  const int64_t distance = work < parts ? parts - over : std::min(parts - over, over);
  return static_cast<float>(distance) / static_cast<float>(parts);
}

bool is_power_of_two(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

// Rows of c a thread computes at a time: the largest of the most even ones. In fp32, since ties must fall alike.
int64_t row_block(int64_t m, int64_t n, int64_t k, int64_t k_block, int32_t threads) {
  const int64_t column_blocks = blocks_of(n, std::min(kPanelCols, n));
  const int64_t smallest = std::min<int64_t>(threads > column_blocks ? 16 : 32, m);
  const float depth_term = unevenness(k, k_block);
  float best_score = 1.0F;
  int64_t best = 1;
  for (int64_t rows = std::min<int64_t>(256, m); rows >= smallest; --rows) {
    const int64_t row_blocks = blocks_of(m, rows);
    const float row_term = static_cast<float>(rows * row_blocks % m) / static_cast<float>(m);
    const float score = (unevenness(row_blocks * column_blocks, threads) + row_term + depth_term) / 5.0F;
    if (score < best_score) {
      best_score = score;
      best = rows;
    }
  }
  return best;
}

}  // namespace

int64_t panel_depth(int64_t k) { return std::min<int64_t>(k, k > 1024 ? 1024 : 512); }

bool copies_panel(int64_t m, int64_t n, int64_t k, OperandB b, int32_t threads) {
  const bool is_plain = b == OperandB::plain || (b == OperandB::transposed && (n == 1 || k == 1));
  // Rows a power of two apart miss the cache.
  if (is_plain && n > 256 && is_power_of_two(n)) return !(threads > blocks_of(n, kPanelCols) && m <= 40);
  return !is_plain && b == OperandB::transposed;
}

int64_t gathered_rows(int64_t m, int64_t n, int64_t k, bool accumulate, int32_t threads) {
  const int64_t k_block = panel_depth(k);
  return accumulate && k > k_block ? row_block(m, n, k, k_block, threads) : 0;
}

int64_t product_scratch_bytes(int64_t m, int64_t n, int64_t k, OperandB b, bool accumulate, int32_t threads) {
  int64_t bytes = 512 * threads + kBooking;
  if (copies_panel(m, n, k, b, threads)) bytes += threads * align_up(panel_depth(k), 16) * kPanelCols * kFloat + kBooking;
  const int64_t gathered = gathered_rows(m, n, k, accumulate, threads);
  if (gathered > 0) bytes += threads * gathered * std::min(kPanelCols, n) * kFloat + kBooking;
  return bytes;
}

}  // namespace snug
