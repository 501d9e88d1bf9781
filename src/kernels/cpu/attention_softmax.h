// The softmax of a panel of queries, forward and backward, in HWY_NAMESPACE, read once for each instruction set.

#include <cstdint>

#include "kernels/cpu/attention_mask.h"
#include "kernels/cpu/highway_lanes.h"

#if defined(SNUG_KERNELS_CPU_ATTENTION_SOFTMAX_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SNUG_KERNELS_CPU_ATTENTION_SOFTMAX_H
#undef SNUG_KERNELS_CPU_ATTENTION_SOFTMAX_H
#else
#define SNUG_KERNELS_CPU_ATTENTION_SOFTMAX_H
#endif

HWY_BEFORE_NAMESPACE();
namespace snug::kernels::HWY_NAMESPACE {

// scores [keys, panel] = cap * tanh(scale * scores / cap); rows are `step` numbers apart.
template <int64_t PANEL>
HWY_INLINE void cap_scores(float* scores, int64_t step, int64_t keys, float scale, float cap) {
  using Lanes = HighwayLanes;
  const auto inverse = Lanes::set(scale / cap);
  for (int64_t key = 0; key < keys; ++key)
    for (int64_t at = key * step; at < key * step + PANEL; at += Lanes::kWidth)
      Lanes::store_whole(Lanes::mul(Lanes::set(cap), Lanes::tanh(Lanes::mul(Lanes::whole(scores + at), inverse))),
                         scores + at);
}

// Folds the scores of `keys` keys, times `scale`, into the panel's maximum and sum, leaves exp(score - maximum) in their
// place and rescales what `out` [D, panel] holds.
template <bool MASKED, int64_t PANEL>
HWY_INLINE void fold_softmax(const Visible<PANEL>& visible, int64_t keys, float scale, float* scores, float* highest,
                             float* total, float* out, int64_t head_size) {
  using Lanes = HighwayLanes;
  constexpr int kVectors = PANEL / Lanes::kWidth;
  constexpr float kLog2E = 1.44269504F;
  const hn::ScalableTag<float> tag;
  Lanes::Vec high[kVectors], sum[kVectors], offset[kVectors];
  for (int v = 0; v < kVectors; ++v) high[v] = Lanes::whole(highest + v * Lanes::kWidth);
  for (int64_t key = 0; key < keys; ++key) {
    SNUG_UNROLL for (int v = 0; v < kVectors; ++v) {
      float* at = scores + key * PANEL + v * Lanes::kWidth;
      auto score = Lanes::mul(Lanes::whole(at), Lanes::set(scale));
      if constexpr (MASKED) score = hn::IfThenElse(visible.mask(key, v), score, hn::Neg(hn::Inf(tag)));
      Lanes::store_whole(score, at);
      high[v] = Lanes::max(high[v], score);
    }
  }
  bool moved = false;
  for (int v = 0; v < kVectors; ++v) {
    const auto before = Lanes::whole(highest + v * Lanes::kWidth);
    const auto shrink = Lanes::exp2(Lanes::mul(Lanes::sub(before, high[v]), Lanes::set(kLog2E)));
    moved = moved || !hn::AllTrue(tag, hn::Eq(before, high[v]));
    Lanes::store_whole(high[v], highest + v * Lanes::kWidth);
    offset[v] = Lanes::mul(high[v], Lanes::set(kLog2E));
    sum[v] = Lanes::mul(Lanes::whole(total + v * Lanes::kWidth), shrink);
    high[v] = shrink;
  }
  for (int64_t key = 0; key < keys; ++key) {
    SNUG_UNROLL for (int v = 0; v < kVectors; ++v) {
      float* at = scores + key * PANEL + v * Lanes::kWidth;
      const auto share = Lanes::exp2(hn::MulSub(Lanes::whole(at), Lanes::set(kLog2E), offset[v]));
      Lanes::store_whole(share, at);
      sum[v] = Lanes::add(sum[v], share);
    }
  }
  for (int v = 0; v < kVectors; ++v) Lanes::store_whole(sum[v], total + v * Lanes::kWidth);
  if (!moved) return;
  for (int64_t d = 0; d < head_size; ++d) {
    for (int v = 0; v < kVectors; ++v) {
      float* at = out + d * PANEL + v * Lanes::kWidth;
      Lanes::store_whole(Lanes::mul(Lanes::whole(at), high[v]), at);
    }
  }
}

// out [D, panel] / total.
template <int64_t PANEL>
HWY_INLINE void divide_panel(const float* total, int64_t head_size, float* out) {
  for (int64_t q = 0; q < PANEL; q += HighwayLanes::kWidth) {
    const auto share = HighwayLanes::div(HighwayLanes::set(1.0F), HighwayLanes::whole(total + q));
    for (int64_t d = 0; d < head_size; ++d) {
      float* at = out + d * PANEL + q;
      HighwayLanes::store_whole(HighwayLanes::mul(HighwayLanes::whole(at), share), at);
    }
  }
}

// delta[q] = sum over d of d_out[q, d] * out[q, d].
template <class T>
HWY_INLINE void row_products(const float* d_out, int64_t d_step, const T* out, int64_t out_step, int64_t rows, int64_t cols,
                             float* delta) {
  using Lanes = HighwayLanes;
  for (int64_t q = 0; q < rows; ++q) {
    auto sum = Lanes::set(0.0F);
    for (int64_t d = 0; d < cols; d += Lanes::kWidth)
      sum = Lanes::fma(Lanes::load(d_out + q * d_step, d, cols), Lanes::load(out + q * out_step, d, cols), sum);
    delta[q] = Lanes::sum(sum);
  }
}

struct ScoreFactors {
  float scale, d_scale, inverse_cap;  // inverse_cap: 0 where scores are not capped
};

// scores, times `scale`, -> p = exp(score - lse), d_scores (d_out . v) -> p * (d_scores - delta) * (1 - (score *
// inverse_cap)^2), times `d_scale`, for `keys` keys of a panel; hidden ones are 0.
template <bool MASKED, int64_t PANEL>
HWY_INLINE void softmax_gradient(const Visible<PANEL>& visible, int64_t keys, const ScoreFactors& factors, float* scores,
                                 float* d_scores, int64_t step, const float* lse, const float* delta) {
  using Lanes = HighwayLanes;
  constexpr int kVectors = PANEL / Lanes::kWidth;
  constexpr float kLog2E = 1.44269504F;
  Lanes::Vec offset[kVectors], shift[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    offset[v] = Lanes::mul(Lanes::whole(lse + v * Lanes::kWidth), Lanes::set(kLog2E));
    shift[v] = Lanes::whole(delta + v * Lanes::kWidth);
  }
  const auto scale = Lanes::set(factors.scale), d_scale = Lanes::set(factors.d_scale);
  const auto inverse_cap = Lanes::set(factors.inverse_cap);
  for (int64_t key = 0; key < keys; ++key) {
    SNUG_UNROLL for (int v = 0; v < kVectors; ++v) {
      float* at = scores + key * step + v * Lanes::kWidth;
      float* d_at = d_scores + key * step + v * Lanes::kWidth;
      const auto score = Lanes::mul(Lanes::whole(at), scale);
      const auto height = Lanes::mul(score, inverse_cap);
      auto share = Lanes::exp2(hn::MulSub(score, Lanes::set(kLog2E), offset[v]));
      if constexpr (MASKED) share = hn::IfThenElseZero(visible.mask(key, v), share);
      Lanes::store_whole(share, at);
      const auto d_capped = Lanes::mul(Lanes::mul(share, d_scale), Lanes::sub(Lanes::whole(d_at), shift[v]));
      Lanes::store_whole(hn::NegMulAdd(Lanes::mul(height, height), d_capped, d_capped), d_at);
    }
  }
}

}  // namespace snug::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
