// Lanes (rows/lanes.h) as a Highway vector, in HWY_NAMESPACE: read once for each instruction set. Conversions between fp32
// and bf16 or f16 equal base/bfloat16.h and base/float16.h bit by bit (but that they may make a signalling NaN a quiet one).
// They are our own where the CPU has none: Highway 1.0.3 truncates to bf16, and its f16 in plain code knows no infinity.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/bfloat16.h"
#include "base/float16.h"
#include "kernels/cpu/highway_targets.h"
#include "kernels/rows/lanes.h"

#if defined(SNUG_KERNELS_CPU_HIGHWAY_LANES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_HIGHWAY_LANES_H
#undef SNUG_KERNELS_CPU_HIGHWAY_LANES_H
#else
#define SNUG_KERNELS_CPU_HIGHWAY_LANES_H
#endif

#include "hwy/highway.h"

#undef SNUG_ROW
#define SNUG_ROW HWY_INLINE

// Of a lambda, behind its parameters.
#undef SNUG_INLINE
#define SNUG_INLINE HWY_ATTR __attribute__((always_inline))

// Sums must stay in registers, so these loops must vanish.
#undef SNUG_UNROLL
#if HWY_COMPILER_CLANG
#define SNUG_UNROLL _Pragma("unroll")
#else
#define SNUG_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// f(0), f(1), ... f(N - 1) of constants: a loop that is gone before a sanitizer puts its checks in, so that an array of sums
// which it counts is in registers there too.
template <int N, int FROM = 0, class F>
HWY_INLINE void unrolled(const F& f) {
  if constexpr (FROM < N) {
    f(std::integral_constant<int, FROM>());
    unrolled<N, FROM + 1>(f);
  }
}

// Whether this instruction set converts between f16 and fp32.
#undef SNUG_HAS_F16
#if HWY_ARCH_X86
#define SNUG_HAS_F16 (HWY_TARGET <= HWY_AVX2)
#else
#define SNUG_HAS_F16 (HWY_TARGET == HWY_NEON)
#endif

// As many fp32 numbers as `d` has lanes, from every type of storage.
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const Bf16* p) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
}
template <class D>
HWY_INLINE hn::Vec<D> load_widened(D d, const F16* p) {
#if SNUG_HAS_F16
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<hwy::float16_t, D>(), reinterpret_cast<const hwy::float16_t*>(p)));
#else
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<int32_t, D> wide;
  const auto bits = hn::PromoteTo(wide, hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(p)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(wide, 0x8000)));
  const auto magnitude = hn::And(bits, hn::Set(wide, 0x7fff));
  const auto rebias =
      hn::IfThenElse(hn::Gt(magnitude, hn::Set(wide, 0x7bff)), hn::Set(wide, 224 << 23), hn::Set(wide, 112 << 23));
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
  const auto subnormal = hn::BitCast(wide, hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24F)));
  const auto chosen = hn::IfThenElse(hn::Lt(magnitude, hn::Set(wide, 0x400)), subnormal, normal);
  return hn::BitCast(d, hn::Or(sign, chosen));
#endif
}

// The opposite, rounded to nearest even; NaN stays NaN.
template <class D>
HWY_INLINE void store_narrowed(D d, hn::Vec<D> v, float* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void store_narrowed(D /*d*/, hn::Vec<D> v, Bf16* p) {
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<uint32_t, D> wide;
  const auto bits = hn::BitCast(wide, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fffU)));
  const auto quiet = hn::Or(bits, hn::Set(wide, 0x400000U));
  const auto is_nan = hn::RebindMask(wide, hn::Not(hn::Eq(v, v)));
  const auto chosen = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  hn::StoreU(hn::TruncateTo(narrow, chosen), narrow, reinterpret_cast<uint16_t*>(p));
}
template <class D>
HWY_INLINE void store_narrowed([[maybe_unused]] D d, hn::Vec<D> v, F16* p) {
#if SNUG_HAS_F16
  const hn::Rebind<hwy::float16_t, D> half;
  hn::StoreU(hn::DemoteTo(half, v), half, reinterpret_cast<hwy::float16_t*>(p));
#else  // as base/float16.h, every case for every lane
  const hn::Rebind<uint16_t, D> narrow;
  const hn::Rebind<int32_t, D> wide;
  const hn::Rebind<uint32_t, D> bits_of;
  const auto bits = hn::BitCast(wide, v);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(wide, 0x7fffffff));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(wide, 1));
  const auto rounded = hn::Add(magnitude, hn::Add(odd, hn::Set(wide, 0xfff - 0x38000000)));
  const auto shifted = hn::BitCast(wide, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5F)));
  const auto is_small = hn::Lt(magnitude, hn::Set(wide, 0x38800000));
  const auto is_large = hn::Gt(magnitude, hn::Set(wide, 0x477fefff));
  const auto is_nan = hn::Gt(magnitude, hn::Set(wide, 0x7f800000));
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(wide, 0x3ff));
  auto chosen = hn::IfThenElse(is_small, hn::Sub(shifted, hn::Set(wide, 0x3f000000)), hn::ShiftRight<13>(rounded));
  chosen = hn::IfThenElse(is_large, hn::Set(wide, 0x7c00), chosen);
  chosen = hn::IfThenElse(is_nan, hn::Or(payload, hn::Set(wide, 0x7e00)), chosen);
  const auto half = hn::TruncateTo(narrow, hn::BitCast(bits_of, hn::Or(sign, chosen)));
  hn::StoreU(half, narrow, reinterpret_cast<uint16_t*>(p));
#endif
}

// One number at a time.
HWY_INLINE float number(float value) { return value; }
HWY_INLINE float number(Bf16 value) { return bf16_to_f32(value.bits); }
HWY_INLINE float number(F16 value) { return f16_to_f32(value.bits); }
HWY_INLINE void put(float value, float* to) { *to = value; }
HWY_INLINE void put(float value, Bf16* to) { to->bits = f32_to_bf16(value); }
HWY_INLINE void put(float value, F16* to) { to->bits = f32_to_f16(value); }

class HighwayLanes {
 public:
  using Tag = hn::ScalableTag<float>;
  using Vec = hn::Vec<Tag>;
  static constexpr int64_t kWidth = HWY_LANES(float);

  static HWY_INLINE int64_t width() { return kWidth; }

  template <class T>
  static HWY_INLINE Vec load(const T* p, int64_t i, int64_t n) {
    if (i + kWidth <= n) return whole(p + i);
    alignas(64) T part[kWidth] = {};
    std::memcpy(part, p + i, static_cast<size_t>(n - i) * sizeof(T));
    return whole(part);
  }

  template <class T>
  static HWY_INLINE void store(Vec v, T* p, int64_t i, int64_t n) {
    if (i + kWidth <= n) return store_whole(v, p + i);
    alignas(64) T part[kWidth];
    store_whole(v, part);
    std::memcpy(p + i, part, static_cast<size_t>(n - i) * sizeof(T));
  }

  template <class T>
  static HWY_INLINE Vec whole(const T* p) {
    return load_widened(Tag(), p);
  }
  template <class T>
  static HWY_INLINE void store_whole(Vec v, T* p) {
    store_narrowed(Tag(), v, p);
  }

  static HWY_INLINE Vec set(float x) { return hn::Set(Tag(), x); }
  static HWY_INLINE Vec inside(int64_t i, int64_t n) {
    if (i + kWidth <= n) return set(1.0F);
    return hn::IfThenElseZero(hn::FirstN(Tag(), static_cast<size_t>(n - i)), set(1.0F));
  }
  static HWY_INLINE Vec add(Vec a, Vec b) { return hn::Add(a, b); }
  static HWY_INLINE Vec sub(Vec a, Vec b) { return hn::Sub(a, b); }
  static HWY_INLINE Vec mul(Vec a, Vec b) { return hn::Mul(a, b); }
  static HWY_INLINE Vec div(Vec a, Vec b) { return hn::Div(a, b); }
  static HWY_INLINE Vec max(Vec a, Vec b) { return hn::Max(a, b); }
  static HWY_INLINE Vec sqrt(Vec a) { return hn::Sqrt(a); }
  static HWY_INLINE Vec fma(Vec a, Vec b, Vec c) { return hn::MulAdd(a, b, c); }
  static HWY_INLINE Vec sign(Vec a) {
    const Vec zero = hn::Zero(Tag());
    return hn::IfThenElse(hn::Gt(a, zero), set(1.0F), hn::IfThenElseZero(hn::Lt(a, zero), set(-1.0F)));
  }
  static HWY_INLINE float sum(Vec v) { return hn::GetLane(hn::SumOfLanes(Tag(), v)); }
  static HWY_INLINE float highest(Vec v) { return hn::GetLane(hn::MaxOfLanes(Tag(), v)); }

  // 2^x: 0 below -126, at most 2^127; NaN stays NaN.
  static HWY_INLINE Vec exp2(Vec x) {
    x = at_most(x, 127.0F);
    const Vec shifted = add(x, set(kMagic));
    return power(shifted, sub(x, sub(shifted, set(kMagic))), hn::Lt(x, set(-126.0F)));
  }

  // e^x. log2(e) in two parts keeps the fraction exact for large |x|.
  static HWY_INLINE Vec exp(Vec x) {
    x = at_most(x, 88.0F);
    const Vec shifted = fma(x, set(1.44269502F), set(kMagic));
    const Vec n = sub(shifted, set(kMagic));
    const Vec r = fma(x, set(1.92596299e-8F), hn::MulSub(x, set(1.44269502F), n));
    return power(shifted, r, hn::Lt(x, set(-87.0F)));
  }

  // tanh(x), exact to 2e-7 of its value: an odd series near 0, 1 - 2 / (e^2x + 1) beyond.
  static HWY_INLINE Vec tanh(Vec x) {
    const Vec square = mul(x, x);
    Vec series = set(62.0F / 2835.0F);
    series = fma(series, square, set(-17.0F / 315.0F));
    series = fma(series, square, set(2.0F / 15.0F));
    series = fma(series, square, set(-1.0F / 3.0F));
    series = fma(mul(series, square), x, x);
    const Vec size = hn::Abs(x);
    const Vec far = sub(set(1.0F), div(set(2.0F), add(exp(add(size, size)), set(1.0F))));
    return hn::IfThenElse(hn::Lt(size, set(0.3F)), series, hn::CopySign(far, x));
  }

 private:
  static constexpr float kMagic = 12582912.0F;  // adding 1.5 * 2^23 leaves the nearest integer n in the low bits of the sum

  static HWY_INLINE Vec at_most(Vec x, float bound) { return hn::IfThenElse(hn::Gt(x, set(bound)), set(bound), x); }

  // 2^n * 2^r, |r| <= 1/2, or 0; the polynomial is fitted at Chebyshev nodes, to a relative error of 5e-9.
  template <class Mask>
  static HWY_INLINE Vec power(Vec shifted, Vec r, Mask vanishes) {
    const hn::Rebind<uint32_t, Tag> bits;
    Vec y = set(1.54531634e-4F);
    y = fma(y, r, set(1.33908633e-3F));
    y = fma(y, r, set(9.61808302e-3F));
    y = fma(y, r, set(5.55035695e-2F));
    y = fma(y, r, set(2.40226507e-1F));
    y = fma(y, r, set(6.93147182e-1F));
    y = fma(y, r, set(1.0F));
    const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 127U)));
    return hn::IfThenZeroElse(vanishes, mul(y, hn::BitCast(Tag(), exponent)));
  }
};

// What a row of n numbers leaves over after its last whole vector: out of line, once for each type and not for each place
// that ends a row, so that the blocks that do stay small.
template <class T>
HWY_NOINLINE HighwayLanes::Vec rest_of(const T* row, int64_t i, int64_t n) {
  return HighwayLanes::load(row, i, n);
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
