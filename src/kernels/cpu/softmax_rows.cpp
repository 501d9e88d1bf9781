#include "kernels/cpu/softmax_rows.h"

#include <limits>

#include "kernels/cpu/highway_targets.h"

#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/highway_lanes.h"

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
constexpr Floats kD;

// The values from x[i] on, and `filler` where the row ends.
hn::Vec<Floats> load_end(const float* x, int64_t i, int64_t n, float filler) {
  HWY_ALIGN float values[hn::MaxLanes(kD)];
  for (int64_t lane = 0; lane < static_cast<int64_t>(hn::Lanes(kD)); ++lane)
    values[lane] = i + lane < n ? x[i + lane] : filler;
  return hn::Load(kD, values);
}

float max_over(const float* x, int64_t n) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kD));
  const float lowest = -std::numeric_limits<float>::infinity();
  auto most = hn::Set(kD, lowest);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) most = hn::Max(most, hn::LoadU(kD, x + i));
  if (i < n) most = hn::Max(most, load_end(x, i, n, lowest));
  return hn::GetLane(hn::MaxOfLanes(kD, most));
}

float sum_exp(const float* x, int64_t n, float shift) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kD));
  const auto by = hn::Set(kD, shift);
  auto sum0 = hn::Zero(kD);
  auto sum1 = hn::Zero(kD);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum0 = hn::Add(sum0, hn::Exp(kD, hn::Sub(hn::LoadU(kD, x + i), by)));
    sum1 = hn::Add(sum1, hn::Exp(kD, hn::Sub(hn::LoadU(kD, x + i + lanes), by)));
  }
  for (; i < n; i += lanes) {
    sum0 = hn::Add(sum0, hn::Exp(kD, hn::Sub(load_end(x, i, n, -std::numeric_limits<float>::infinity()), by)));
  }
  return hn::GetLane(hn::SumOfLanes(kD, hn::Add(sum0, sum1)));
}

// x[i] = map(x[i]); `filler` stands in where the row ends.
template <class Map>
HWY_INLINE void map_in_place(float* x, int64_t n, float filler, const Map& map) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kD));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(map(hn::LoadU(kD, x + i)), kD, x + i);
  if (i < n) {
    HWY_ALIGN float values[hn::MaxLanes(kD)];
    hn::Store(map(load_end(x, i, n, filler)), kD, values);
    for (int64_t lane = 0; i < n; ++i, ++lane) x[i] = values[lane];
  }
}

float exp_scaled(float* x, int64_t n, float shift, float factor, float inverse_cap) {
  const auto by = hn::Set(kD, shift);
  const auto times = hn::Set(kD, factor);
  const auto inverse = hn::Set(kD, inverse_cap);
  auto sum = hn::Zero(kD);
  map_in_place(x, n, -std::numeric_limits<float>::infinity(), [&](auto v) HWY_ATTR {
    const auto height = hn::Mul(v, inverse);
    const auto power = hn::Exp(kD, hn::Sub(v, by));
    sum = hn::Add(sum, power);
    const auto share = hn::Mul(power, times);
    return hn::NegMulAdd(hn::Mul(height, height), share, share);
  });
  return hn::GetLane(hn::SumOfLanes(kD, sum));
}

void cap_over(float* x, int64_t n, float limit) {
  const auto times = hn::Set(kD, limit);
  const auto inverse = hn::Set(kD, 1.0F / limit);
  map_in_place(x, n, 0.0F, [&](auto v) HWY_ATTR { return hn::Mul(times, HighwayLanes::tanh(hn::Mul(v, inverse))); });
}

}  // namespace
}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace snug::kernels {

HWY_EXPORT(max_over);
HWY_EXPORT(sum_exp);
HWY_EXPORT(exp_scaled);
HWY_EXPORT(cap_over);

float max_of(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(max_over)(x, n); }
float sum_of_exp(const float* x, int64_t n, float shift) { return HWY_DYNAMIC_DISPATCH(sum_exp)(x, n, shift); }
float exp_in_place(float* x, int64_t n, float shift, float factor, float inverse_cap) {
  return HWY_DYNAMIC_DISPATCH(exp_scaled)(x, n, shift, factor, inverse_cap);
}
void cap_in_place(float* x, int64_t n, float cap) { HWY_DYNAMIC_DISPATCH(cap_over)(x, n, cap); }

}  // namespace snug::kernels
#endif
