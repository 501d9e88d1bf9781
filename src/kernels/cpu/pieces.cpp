#include "kernels/cpu/pieces.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/bf16_tiles.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/storage.h"
#include "kernels/cpu/tiles.h"

#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

using Lanes = HighwayLanes;

// The bits of each number as bf16, rounded to nearest even, in the upper half of its lane.
template <class Vec>
HWY_INLINE auto upper_bf16(Vec v) {
  const hn::Rebind<uint32_t, HighwayLanes::Tag> wide;
  const auto bits = hn::BitCast(wide, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fffU)));
  const auto quiet = hn::Or(bits, hn::Set(wide, 0x400000U));
  const auto is_nan = hn::RebindMask(wide, hn::Not(hn::Eq(v, v)));
  return hn::And(hn::IfThenElse(is_nan, quiet, rounded), hn::Set(wide, 0xffff0000U));
}

// rows x cols of fp32 -> bf16 pieces; cols is a multiple of the vector.
void split_floats(const float* src, int64_t src_stride, int64_t rows, int64_t cols, uint16_t* high, int64_t low,
                  int64_t dst_stride) {
  const hn::Rebind<uint16_t, HighwayLanes::Tag> narrow;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; c += HighwayLanes::kWidth) {
      const auto v = HighwayLanes::whole(src + r * src_stride + c);
      const auto upper = upper_bf16(v);
      uint16_t* const to = high + r * dst_stride + c;
      hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<16>(upper)), narrow, to);
      if (low == 0) continue;
      const auto rest = upper_bf16(hn::Sub(v, hn::BitCast(HighwayLanes::Tag(), upper)));
      hn::StoreU(hn::TruncateTo(narrow, hn::ShiftRight<16>(rest)), narrow, to + low);
    }
  }
}

// Two rows of 32 numbers, side by side: pairs (even[i], odd[i]).
HWY_INLINE void pair_floats(const float* even, const float* odd, uint16_t* high, int64_t low) {
  const hn::Rebind<uint32_t, HighwayLanes::Tag> wide;
  for (int64_t c = 0; c < kTile; c += HighwayLanes::kWidth) {
    const auto first = HighwayLanes::whole(even + c);
    const auto second = HighwayLanes::whole(odd + c);
    const auto upper_first = upper_bf16(first);
    const auto upper_second = upper_bf16(second);
    auto* const to = reinterpret_cast<uint32_t*>(high + 2 * c);
    hn::StoreU(hn::Or(hn::ShiftRight<16>(upper_first), upper_second), wide, to);
    if (low == 0) continue;
    const auto rest_first = upper_bf16(hn::Sub(first, hn::BitCast(HighwayLanes::Tag(), upper_first)));
    const auto rest_second = upper_bf16(hn::Sub(second, hn::BitCast(HighwayLanes::Tag(), upper_second)));
    hn::StoreU(hn::Or(hn::ShiftRight<16>(rest_first), rest_second), wide, to + low / 2);
  }
}

void pair_rows(const float* rows, int64_t count, uint16_t* high, int64_t low) {
  for (int64_t r = 0; r < count; r += 2) pair_floats(rows + r * kTile, rows + (r + 1) * kTile, high + r * kTile, low);
}

// The same for bf16 rows, which are exact: 32 columns of `count` rows, an even number.
void pair_bf16_rows(const uint16_t* src, int64_t stride, int64_t count, uint16_t* dst) {
  const hn::Rebind<uint16_t, HighwayLanes::Tag> narrow;
  const hn::Rebind<uint32_t, HighwayLanes::Tag> wide;
  for (int64_t r = 0; r < count; r += 2) {
    for (int64_t c = 0; c < kTile; c += HighwayLanes::kWidth) {
      const auto first = hn::PromoteTo(wide, hn::LoadU(narrow, src + r * stride + c));
      const auto second = hn::PromoteTo(wide, hn::LoadU(narrow, src + (r + 1) * stride + c));
      hn::StoreU(hn::Or(first, hn::ShiftLeft<16>(second)), wide, reinterpret_cast<uint32_t*>(dst + r * kTile + 2 * c));
    }
  }
}

template <class T>
HWY_INLINE void store_rows(const float* tile, T* c, int64_t c_stride, int64_t rows, int64_t cols, float scale,
                           bool accumulate) {
  const auto times = Lanes::set(scale);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < cols; i += Lanes::kWidth) {
      auto v = Lanes::mul(Lanes::whole(tile + r * kTile + i), times);
      if (accumulate) v = Lanes::add(v, Lanes::load(c + r * c_stride, i, cols));
      Lanes::store(v, c + r * c_stride, i, cols);
    }
  }
}

void store_tile_any(const float* tile, const Out& c, int64_t c_stride, int64_t rows, int64_t cols, float scale,
                    bool accumulate) {
  with_type(c, [&](auto* to) HWY_ATTR { store_rows(tile, to, c_stride, rows, cols, scale, accumulate); });
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(split_floats);
HWY_EXPORT(pair_rows);
HWY_EXPORT(pair_bf16_rows);
HWY_EXPORT(store_tile_any);

namespace {

constexpr int64_t kChunk = 64;  // of the summed dimension, widened at a time

// dst[rows, cols] in fp32, dst_stride elements a row.
void widen(const MatrixView& view, float* dst, int64_t dst_stride) {
  if (view.transposed) return transpose_tile(view.data, view.stride, dst, dst_stride, view.cols, view.rows);
  copy_tile(view.data, view.stride, dst, dst_stride, view.rows, view.cols);
}

}  // namespace

namespace {

// 32 columns of 4-bit codes, each a stored row, `rows` of the summed dimension: a pair is one 32-bit word of a stored row.
void pack_quantized_columns(const MatrixView& b, int64_t rows, uint16_t* high) {
  alignas(64) uint32_t words[kTile * kChunk / 2];
  for (int64_t k = 0; k < rows; k += kChunk) {
    const int64_t count = std::min(kChunk, rows - k);
    for (int64_t c = 0; c < kTile; ++c) dequantize_pairs(b.data, c * b.stride + k, count, words + c * (kChunk / 2));
    transpose_tile({words, DType::f32}, kChunk / 2, reinterpret_cast<float*>(high + k * kTile), kTile, kTile, count / 2);
  }
}

}  // namespace

MatrixView MatrixView::part(int64_t row, int64_t col, int64_t part_rows, int64_t part_cols) const {
  return {at(data, transposed ? col * stride + row : row * stride + col), stride, transposed, part_rows, part_cols};
}

void split_rows(const MatrixView& a, uint16_t* high, int64_t low) {
  alignas(64) float chunk[kTile * kChunk];
  const int64_t padded = (a.cols + kTile - 1) / kTile * kTile;
  if (a.data.dtype == DType::bf16 && !a.transposed && a.cols == padded) {
    const auto* const bits = static_cast<const uint16_t*>(a.data.data);
    for (int64_t r = 0; r < a.rows; ++r) std::copy_n(bits + r * a.stride, padded, high + r * padded);
    std::fill_n(high + a.rows * padded, (kTile - a.rows) * padded, uint16_t{0});
    return;
  }
  for (int64_t k = 0; k < padded; k += kChunk) {
    const int64_t wide = std::min(kChunk, padded - k);
    if (a.data.dtype == DType::f32 && !a.transposed && a.rows == kTile && k + wide <= a.cols) {
      const auto* src = static_cast<const float*>(a.part(0, k, kTile, wide).data.data);
      HWY_DYNAMIC_DISPATCH(split_floats)(src, a.stride, kTile, wide, high + k, low, padded);
      continue;
    }
    if (a.rows < kTile || k + wide > a.cols) std::fill_n(chunk, kTile * kChunk, 0.0F);
    if (k < a.cols) widen(a.part(0, k, a.rows, std::min(wide, a.cols - k)), chunk, kChunk);
    HWY_DYNAMIC_DISPATCH(split_floats)(chunk, kChunk, kTile, wide, high + k, low, padded);
  }
}

void pack_pairs(const MatrixView& b, uint16_t* high, int64_t low) {
  const int64_t padded = (b.rows + kTile - 1) / kTile * kTile;
  const auto* const bits = static_cast<const uint16_t*>(b.data.data);
  int64_t k = 0;
  if (b.cols == kTile && b.stride % kTile == 0 && has_pairs(b.data)) {
    k = b.rows / kTile * kTile;
    if (b.transposed) {
      pack_quantized_columns(b, k, high);
    } else {
      dequantize_row_pairs(b.data, b.stride, k, reinterpret_cast<uint32_t*>(high));
    }
  }
  if (b.data.dtype == DType::bf16 && b.cols == kTile) {
    const int64_t whole = b.rows / 2 * 2;
    if (!b.transposed) {
      HWY_DYNAMIC_DISPATCH(pair_bf16_rows)(bits, b.stride, whole, high);
      k = whole;
    } else if (b.stride % 2 == 0) {  // a pair is one 32-bit word of a stored row: words are turned, whatever they mean
      transpose_tile({bits, DType::f32}, b.stride / 2, reinterpret_cast<float*>(high), kTile, kTile, whole / 2);
      k = whole;
    }
  }
  alignas(64) float chunk[kChunk * kTile];
  for (; k < padded; k += kChunk) {
    const int64_t rows = std::min(kChunk, padded - k);
    if (b.cols < kTile || k + rows > b.rows) std::fill_n(chunk, kChunk * kTile, 0.0F);
    if (k < b.rows) widen(b.part(k, 0, std::min(rows, b.rows - k), b.cols), chunk, kTile);
    HWY_DYNAMIC_DISPATCH(pair_rows)(chunk, rows, high + k * kTile, low);
  }
}

void pair_panel(const float* rows, int64_t count, uint16_t* pairs) {
  HWY_DYNAMIC_DISPATCH(pair_rows)(rows, count, pairs, 0);
}

void round_rows(const float* src, int64_t src_stride, int64_t rows, int64_t cols, uint16_t* dst, int64_t dst_stride) {
  HWY_DYNAMIC_DISPATCH(split_floats)(src, src_stride, rows, cols, dst, 0, dst_stride);
}

void store_tile(const float* tile, const Out& c, int64_t c_stride, int64_t rows, int64_t cols, float scale,
                bool accumulate) {
  HWY_DYNAMIC_DISPATCH(store_tile_any)(tile, c, c_stride, rows, cols, scale, accumulate);
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
