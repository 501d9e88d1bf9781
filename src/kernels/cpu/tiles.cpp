#include "kernels/cpu/tiles.h"

#include <algorithm>

#include "kernels/cpu/highway_targets.h"
#include "kernels/cpu/storage.h"

#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void copy(const T* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, src += src_stride, dst += dst_stride) {
    int64_t c = 0;
    for (; c + lanes <= cols; c += lanes) hn::StoreU(load_widened(d, src + c), d, dst + c);
    for (; c < cols; ++c) dst[c] = number(src[c]);
  }
}

constexpr int64_t kSquare = 16;  // so that whole cache lines are read and written

template <class T>
void transpose_elements(const T* src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) dst[c * dst_stride + r] = number(src[r * src_stride + c]);
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
  const auto row0 = load_widened(d, src);
  const auto row1 = load_widened(d, src + src_stride);
  const auto row2 = load_widened(d, src + 2 * src_stride);
  const auto row3 = load_widened(d, src + 3 * src_stride);
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
    store_narrowed(d, accumulate ? hn::Add(load_widened(d, dst + i), value) : value, dst + i);
  }
  for (; i < elements; ++i) put(accumulate ? number(dst[i]) + src[i] : src[i], dst + i);
}

void copy_any(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  with_type(src, [&](auto* from) HWY_ATTR { copy(from, src_stride, dst, dst_stride, rows, cols); });
}
void transpose_any(const In& src, int64_t src_stride, float* dst, int64_t dst_stride, int64_t rows, int64_t cols) {
  with_type(src, [&](auto* from) HWY_ATTR { transpose(from, src_stride, dst, dst_stride, rows, cols); });
}
void store_any(const float* src, const Out& dst, int64_t elements, bool accumulate) {
  with_type(dst, [&](auto* to) HWY_ATTR { store_elements(src, to, elements, accumulate); });
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
