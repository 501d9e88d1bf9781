// Lanes (rows/lanes.h) as a Highway vector, in HWY_NAMESPACE: read once for each instruction set. Conversions between bf16
// and fp32 are our own and equal base/bfloat16.h bit by bit: Highway 1.0.3 truncates.

#include <cstdint>
#include <cstring>

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

  static HWY_INLINE Vec whole(const float* p) { return hn::LoadU(Tag(), p); }
  static HWY_INLINE Vec whole(const Bf16* p) {
    const hn::Rebind<uint16_t, Tag> narrow;
    const hn::Rebind<uint32_t, Tag> wide;
    const auto bits = hn::LoadU(narrow, reinterpret_cast<const uint16_t*>(p));
    return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(wide, bits)));
  }
  static HWY_INLINE void store_whole(Vec v, float* p) { hn::StoreU(v, Tag(), p); }
  static HWY_INLINE void store_whole(Vec v, Bf16* p) {
    const hn::Rebind<uint16_t, Tag> narrow;
    const hn::Rebind<uint32_t, Tag> wide;
    const auto bits = hn::BitCast(wide, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(wide, 1U));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7fffU)));
    const auto quiet = hn::Or(bits, hn::Set(wide, 0x400000U));
    const auto is_nan = hn::RebindMask(wide, hn::Not(hn::Eq(v, v)));
    const auto chosen = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
    hn::StoreU(hn::TruncateTo(narrow, chosen), narrow, reinterpret_cast<uint16_t*>(p));
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

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
