#include "kernels/cpu/dequantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/bfloat16.h"
#include "base/dynamic_map.h"
#include "base/error.h"
#include "base/float16.h"
#include "kernels/cpu/highway_targets.h"
#include "quantize/four_bit.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"

#include "kernels/cpu/highway_lanes.h"

#ifndef SNUG_KERNELS_CPU_DEQUANTIZE_SCALE
#define SNUG_KERNELS_CPU_DEQUANTIZE_SCALE
namespace snug::kernels {

// The absmax of a block.
inline float absmax_of(const Scales& scales, int64_t block) {
  if (scales.nested_absmax == nullptr) return static_cast<const float*>(scales.absmax)[block];
  static const float* const map = DynamicMap::of_signed().values().data();
  const float scaled = map[static_cast<const uint8_t*>(scales.absmax)[block]] * scales.nested_absmax[block / kNestedBlock];
  return scaled + *scales.offset;
}

// What each code stands for, by kernels/operands.h; -0 for FP4's code 8, as bitsandbytes' kernels have it.
inline const float* values_of_codes(DType dtype) {
  static const std::array<float, 16> nf4 = [] {
    std::array<float, 16> values;
    std::ranges::copy(values_of(FourBit::nf4), values.begin());
    return values;
  }();
  static const std::array<float, 16> fp4 = [] {
    std::array<float, 16> values;
    std::ranges::copy(values_of(FourBit::fp4), values.begin());
    values[8] = -0.0F;
    return values;
  }();
  return dtype == DType::nf4 ? nf4.data() : fp4.data();
}

}  // namespace snug::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3  // or a better one: 16 floats to a vector

constexpr bool kPairs = true;
using Floats = HighwayLanes::Tag;
using Words = hn::Rebind<uint32_t, Floats>;
using Indices = hn::Rebind<int32_t, Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;

// The block of an element: has_pairs() has seen that its size is a power of two.
HWY_INLINE int64_t block_of(const In& matrix, int64_t element) {
  return element >> std::countr_zero(static_cast<uint64_t>(matrix.scales.block_size));
}

// The 16 numbers of a block as bf16, rounded to nearest even, in the lower half of each lane. (None is a NaN.)
HWY_INLINE hn::Vec<Words> table_of(const In& matrix, hn::Vec<Floats> values, int64_t block) {
  const Words words;
  const auto scale = hn::Set(Floats(), absmax_of(matrix.scales, block));
  const auto bits = hn::BitCast(words, hn::Mul(values, scale));
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
  return hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fffU))));
}

HWY_INLINE hn::Vec<Words> look_up(hn::Vec<Words> table, hn::Vec<Words> codes) {
  return hn::TableLookupLanes(table, hn::IndicesFromVec(Words(), hn::BitCast(Indices(), codes)));
}

void pairs(const In& matrix, int64_t begin, int64_t count, uint32_t* out) {
  const Words words;
  const auto* const codes = static_cast<const uint8_t*>(matrix.data) + (matrix.first + begin) / 2;
  const auto values = hn::LoadU(Floats(), values_of_codes(matrix.dtype));
  const auto low_bits = hn::Set(words, 15U);
  constexpr int64_t kAhead = 96;  // bytes: callers go along many rows at once, more than the CPU foresees
  hwy::Prefetch(codes + kAhead);
  int64_t block = -1;
  auto table = hn::Zero(words);
  for (int64_t i = 0; i < count; i += 32) {
    if (const int64_t here = block_of(matrix, matrix.first + begin + i); here != block) {
      block = here;
      table = table_of(matrix, values, block);
    }
    const auto two = hn::PromoteTo(words, hn::LoadU(Bytes(), codes + i / 2));  // the first element is the high half
    const auto first = look_up(table, hn::ShiftRight<4>(two));
    const auto second = look_up(table, hn::And(two, low_bits));
    hn::StoreU(hn::Or(first, hn::ShiftLeft<16>(second)), words, out + i / 2);
  }
}

// 32 numbers of one row, in order, as words.
HWY_INLINE void row_of_32(const In& matrix, hn::Vec<Floats> values, int64_t element, hn::Vec<Words>& lower,
                          hn::Vec<Words>& upper) {
  const hn::Full128<uint8_t> bytes;
  const Words words;
  const auto two = hn::LoadU(bytes, static_cast<const uint8_t*>(matrix.data) + element / 2);
  const auto low_bits = hn::Set(bytes, 15);
  const hn::Full128<uint16_t> shorts;
  const auto first = hn::And(hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(shorts, two))), low_bits);
  const auto second = hn::And(two, low_bits);
  const auto table = table_of(matrix, values, block_of(matrix, element));
  lower = look_up(table, hn::PromoteTo(words, hn::InterleaveLower(bytes, first, second)));
  upper = look_up(table, hn::PromoteTo(words, hn::InterleaveUpper(bytes, first, second)));
}

void row_pairs(const In& matrix, int64_t stride, int64_t rows, uint32_t* out) {
  const Words words;
  const auto values = hn::LoadU(Floats(), values_of_codes(matrix.dtype));
  constexpr int64_t kAhead = 16;  // rows: far apart, so the CPU does not foresee them
  for (int64_t row = 0; row < rows; row += 2, out += 32) {
    const int64_t begin = matrix.first + row * stride;
    for (const int64_t ahead : {begin + kAhead * stride, begin + (kAhead + 1) * stride}) {
      hwy::Prefetch(static_cast<const uint8_t*>(matrix.data) + ahead / 2);
      hwy::Prefetch(static_cast<const uint8_t*>(matrix.scales.absmax) +
                    block_of(matrix, ahead) * (matrix.scales.nested_absmax == nullptr ? 4 : 1));
    }
    auto lower = hn::Zero(words), upper = lower, next_lower = lower, next_upper = lower;
    row_of_32(matrix, values, begin, lower, upper);
    row_of_32(matrix, values, begin + stride, next_lower, next_upper);
    hn::StoreU(hn::Or(lower, hn::ShiftLeft<16>(next_lower)), words, out);
    hn::StoreU(hn::Or(upper, hn::ShiftLeft<16>(next_upper)), words, out + 16);
  }
}

#else

constexpr bool kPairs = false;
void pairs(const In&, int64_t, int64_t, uint32_t*) {}
void row_pairs(const In&, int64_t, int64_t, uint32_t*) {}

#endif

bool pairs_exist() { return kPairs; }

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(pairs);
HWY_EXPORT(row_pairs);
HWY_EXPORT(pairs_exist);

namespace {

// Elements of one block.
void dequantize_4bit_block(const In& matrix, int64_t begin, int64_t count, float scale, float* out) {
  const float* const values = values_of_codes(matrix.dtype);
  std::array<float, 16> scaled;
  for (size_t code = 0; code < 16; ++code) scaled[code] = values[code] * scale;
  const auto* const codes = static_cast<const uint8_t*>(matrix.data);
  int64_t i = 0;
  if (begin % 2 != 0) out[i++] = scaled[codes[begin / 2] & 15];
  for (; i + 2 <= count; i += 2) {
    const uint8_t two = codes[(begin + i) / 2];
    out[i] = scaled[two >> 4];
    out[i + 1] = scaled[two & 15];
  }
  if (i < count) out[i] = scaled[codes[(begin + i) / 2] >> 4];
}

void dequantize_int8_row(const In& matrix, int64_t begin, int64_t count, float scale, float* out) {
  const auto* const codes = static_cast<const int8_t*>(matrix.data) + begin;
  for (int64_t i = 0; i < count; ++i) out[i] = (static_cast<float>(codes[i]) * scale) * (1.0F / 127.0F);
}

void round_to(DType dtype, int64_t count, float* values) {
  if (dtype == DType::bf16)
    for (int64_t i = 0; i < count; ++i) values[i] = bf16_to_f32(f32_to_bf16(values[i]));
  if (dtype == DType::f16)
    for (int64_t i = 0; i < count; ++i) values[i] = f16_to_f32(f32_to_f16(values[i]));
}

}  // namespace

void dequantize(const In& matrix, int64_t begin, int64_t count, float* out) {
  const int64_t block_size = matrix.scales.block_size;
  const bool by_rows = matrix.dtype == DType::i8;
  for (int64_t done = 0, part = 0; done < count; done += part) {
    const int64_t element = matrix.first + begin + done;
    part = std::min(count - done, block_size - element % block_size);
    const float scale = absmax_of(matrix.scales, element / block_size);
    (by_rows ? dequantize_int8_row : dequantize_4bit_block)(matrix, element, part, scale, out + done);
  }
  round_to(matrix.scales.values, count, out);
}

bool has_pairs(const In& matrix) {
  return is_4bit(matrix.dtype) && matrix.scales.values == DType::bf16 && matrix.scales.block_size % 32 == 0 &&
         std::has_single_bit(static_cast<uint64_t>(matrix.scales.block_size)) && matrix.first % 32 == 0 &&
         HWY_DYNAMIC_DISPATCH(pairs_exist)();
}

void dequantize_pairs(const In& matrix, int64_t begin, int64_t count, uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(pairs)(matrix, begin, count, words);
}

void dequantize_row_pairs(const In& matrix, int64_t stride, int64_t rows, uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(row_pairs)(matrix, stride, rows, words);
}

}  // namespace snug::kernels
#endif  // HWY_ONCE
