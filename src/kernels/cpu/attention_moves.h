// Moving blocks of numbers for attention: widening, narrowing and transposing, in HWY_NAMESPACE, read once for each
// instruction set.

#include <cstdint>
#include <cstring>

#include "kernels/cpu/highway_lanes.h"
#include "kernels/cpu/storage.h"
#include "kernels/operands.h"

#if defined(SNUG_KERNELS_CPU_ATTENTION_MOVES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_ATTENTION_MOVES_H
#undef SNUG_KERNELS_CPU_ATTENTION_MOVES_H
#else
#define SNUG_KERNELS_CPU_ATTENTION_MOVES_H
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// to[i, 0..cols) = scale * from[i, 0..cols), then zeros up to to_step; rows `from_step` and `to_step` numbers apart.
template <class T>
HWY_INLINE void widen(const T* from, int64_t from_step, int64_t rows, int64_t cols, float scale, float* to,
                      int64_t to_step) {
  const auto factor = HighwayLanes::set(scale);
  for (int64_t i = 0; i < rows; ++i) {
    float* row = to + i * to_step;
    for (int64_t j = 0; j < cols; j += HighwayLanes::kWidth)
      HighwayLanes::store(HighwayLanes::mul(HighwayLanes::load(from + i * from_step, j, cols), factor), row, j, cols);
    for (int64_t j = cols; j < to_step; ++j) row[j] = 0.0F;
  }
}

// The same from element `offset` of an operand.
inline void widen(const In& from, int64_t offset, int64_t from_step, int64_t rows, int64_t cols, float scale, float* to,
                  int64_t to_step) {
  with_type(from, [&](auto* data) HWY_ATTR { widen(data + offset, from_step, rows, cols, scale, to, to_step); });
}

template <class T>
HWY_INLINE void narrow(const float* from, int64_t rows, int64_t cols, T* to, int64_t to_step) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; j += HighwayLanes::kWidth)
      HighwayLanes::store(HighwayLanes::load(from + i * cols, j, cols), to + i * to_step, j, cols);
}

// to[i, 0..cols) = from[i, 0..cols) for dense rows, to element `offset` of an operand.
inline void narrow(const float* from, int64_t rows, int64_t cols, const Out& to, int64_t offset, int64_t to_step) {
  with_type(to, [&](auto* data) HWY_ATTR { narrow(from, rows, cols, data + offset, to_step); });
}

// to[j, i] = from[i, j]: 4 x 4 numbers at a time in registers.
inline void transpose(const float* from, int64_t from_step, int64_t rows, int64_t cols, float* to, int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  const int64_t whole_rows = 0, whole_cols = 0;
#else
  const int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  const hn::FixedTag<float, 4> four;
  const hn::FixedTag<double, 2> two;
  const auto pairs = [&](auto v) HWY_ATTR { return hn::BitCast(two, v); };
  for (int64_t j = 0; j < whole_cols; j += 4) {
    for (int64_t i = 0; i < whole_rows; i += 4) {
      const float* a = from + i * from_step + j;
      const auto r0 = hn::LoadU(four, a), r1 = hn::LoadU(four, a + from_step);
      const auto r2 = hn::LoadU(four, a + 2 * from_step), r3 = hn::LoadU(four, a + 3 * from_step);
      const auto low01 = pairs(hn::InterleaveLower(four, r0, r1)), high01 = pairs(hn::InterleaveUpper(four, r0, r1));
      const auto low23 = pairs(hn::InterleaveLower(four, r2, r3)), high23 = pairs(hn::InterleaveUpper(four, r2, r3));
      float* c = to + j * to_step + i;
      hn::StoreU(hn::BitCast(four, hn::InterleaveLower(two, low01, low23)), four, c);
      hn::StoreU(hn::BitCast(four, hn::InterleaveUpper(two, low01, low23)), four, c + to_step);
      hn::StoreU(hn::BitCast(four, hn::InterleaveLower(two, high01, high23)), four, c + 2 * to_step);
      hn::StoreU(hn::BitCast(four, hn::InterleaveUpper(two, high01, high23)), four, c + 3 * to_step);
    }
  }
#endif
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t i = j < whole_cols ? whole_rows : 0; i < rows; ++i) to[j * to_step + i] = from[i * from_step + j];
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
