#include "kernels/cpu/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tiles.cpp"

#include <algorithm>

#include "kernels/cpu/highway_targets.h"

#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/highway.h"

#include "base/bfloat16.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// As many fp32 values as `d` has lanes, from either type.
template <class D>
hn::Vec<D> load([[maybe_unused]] D d, const float* data) {
  return hn::LoadU(d, data);
}
template <class D>
hn::Vec<D> load(D d, const uint16_t* data) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> half;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(half, data))));
}
inline float load(const float* data) { return *data; }
inline float load(const uint16_t* data) { return bf16_to_f32(*data); }

template <class D>
void store(D d, hn::Vec<D> value, float* data) {
  hn::StoreU(value, d, data);
}
// Rounds to nearest even as base/bfloat16.h does; NaN stays NaN.
template <class D>
void store(D /*d*/, hn::Vec<D> value, uint16_t* data) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<uint16_t, D> half;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffU))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40U));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(du, 0x7fffffffU)), hn::Set(du, 0x7f800000U));
  hn::StoreU(hn::TruncateTo(half, hn::IfThenElse(is_nan, quiet, rounded)), half, data);
}
inline void store(float value, float* data) { *data = value; }
inline void store(float value, uint16_t* data) { *data = f32_to_bf16(value); }

template <class T>
void copy(const T* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
    int64_t c = 0;
    for (; c + lanes <= cols; c += lanes) hn::StoreU(load(d, src + c), d, dst + c);
    for (; c < cols; ++c) dst[c] = load(src + c);
  }
}

constexpr int64_t kSquare = 16;  // so that whole cache lines are read and written

template <class T>
void transpose_elements(const T* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) dst[c * dst_stride + r] = load(src + r * src_stride + c);
  }
}

#if HWY_TARGET == HWY_SCALAR
template <class T>
void transpose_square(const T* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  transpose_elements(src, src_stride, dst, dst_stride, kSquare, kSquare);
}
#else
// 4 x 4 values within 128-bit vectors.
template <class T>
void transpose_4x4(const T* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  const hn::CappedTag<float, 4> d;
  const auto row0 = load(d, src);
  const auto row1 = load(d, src + src_stride);
  const auto row2 = load(d, src + 2 * src_stride);
  const auto row3 = load(d, src + 3 * src_stride);
  const auto low01 = hn::InterleaveLower(d, row0, row1);
  const auto low23 = hn::InterleaveLower(d, row2, row3);
  const auto high01 = hn::InterleaveUpper(d, row0, row1);
  const auto high23 = hn::InterleaveUpper(d, row2, row3);
  hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, dst);
  hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, dst + dst_stride);
  hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, dst + 2 * dst_stride);
  hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, dst + 3 * dst_stride);
}

template <class T>
void transpose_square(const T* src, int64_t src_stride, float* dst, int64_t dst_stride) {
  for (int64_t c = 0; c < kSquare; c += 4) {
    for (int64_t r = 0; r < kSquare; r += 4) {
      transpose_4x4(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);
    }
  }
}
#endif

template <class T>
void transpose(const T* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r += kSquare) {
    for (int64_t c = 0; c < cols; c += kSquare) {
      const T* from = src + r * src_stride + c;
      float* to = dst + c * dst_stride + r;
      const int64_t height = HWY_MIN(kSquare, rows - r);
      const int64_t width = HWY_MIN(kSquare, cols - c);
      if (height == kSquare && width == kSquare) {
        transpose_square(from, src_stride, to, dst_stride);
      } else {
        transpose_elements(from, src_stride, to, dst_stride, height, width);
      }
    }
  }
}

template <class T>
void store_elements(const float* src, T* dst, int64_t elements, bool accumulate) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= elements; i += lanes) {
    const auto value = hn::LoadU(d, src + i);
    store(d, accumulate ? hn::Add(load(d, dst + i), value) : value, dst + i);
  }
  for (; i < elements; ++i) store(accumulate ? load(dst + i) + src[i] : src[i], dst + i);
}

void copy_any(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  if (src.dtype == DType::f32) return copy(static_cast<const float*>(src.data), src_stride, dst, dst_stride, rows, cols);
  copy(static_cast<const uint16_t*>(src.data), src_stride, dst, dst_stride, rows, cols);
}
void transpose_any(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  if (src.dtype == DType::f32)
    return transpose(static_cast<const float*>(src.data), src_stride, dst, dst_stride, rows, cols);
  transpose(static_cast<const uint16_t*>(src.data), src_stride, dst, dst_stride, rows, cols);
}
void store_any(const float* src, const Out& dst, int64_t elements, bool accumulate) {
  if (dst.dtype == DType::f32) return store_elements(src, static_cast<float*>(dst.data), elements, accumulate);
  store_elements(src, static_cast<uint16_t*>(dst.data), elements, accumulate);
}

}  // namespace
}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(copy_any);
HWY_EXPORT(transpose_any);
HWY_EXPORT(store_any);

namespace {

// As transpose_tile, in pieces that are dequantized first.
void transpose_quantized(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  constexpr int64_t kRows = 16, kCols = 64;
  alignas(64) float piece[kRows * kCols];
  for (int64_t r = 0; r < rows; r += kRows) {
    const int64_t height = std::min(kRows, rows - r);
    for (int64_t c = 0; c < cols; c += kCols) {
      const int64_t width = std::min(kCols, cols - c);
      for (int64_t i = 0; i < height; ++i) dequantize(src, (r + i) * src_stride + c, width, piece + i * kCols);
      HWY_DYNAMIC_DISPATCH(transpose_any)
      ({piece, DType::f32}, kCols, dst + c * dst_stride + r, dst_stride, height, width);
    }
  }
}

}  // namespace

void copy_tile(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  if (is_quantized(src)) {
    for (int64_t r = 0; r < rows; ++r) dequantize(src, r * src_stride, cols, dst + r * dst_stride);
    return;
  }
  HWY_DYNAMIC_DISPATCH(copy_any)(src, src_stride, dst, dst_stride, rows, cols);
}
void transpose_tile(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  if (is_quantized(src)) return transpose_quantized(src, src_stride, dst, dst_stride, rows, cols);
  HWY_DYNAMIC_DISPATCH(transpose_any)(src, src_stride, dst, dst_stride, rows, cols);
}
void store_row(const float* src, const Out& dst, int64_t elements, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(store_any)(src, dst, elements, accumulate);
}

}  // namespace snug::kernels
#endif
