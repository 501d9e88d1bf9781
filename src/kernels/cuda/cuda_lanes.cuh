#pragma once
// Lanes (rows/lanes.h) as a warp: 32 threads with one number each. All threads of the warp call together.

#include <cstdint>

#include "kernels/rows/lanes.h"

#undef SNUG_ROW
#define SNUG_ROW __device__ inline

namespace snug::kernels {

class WarpLanes {
 public:
  using Vec = float;
  static constexpr int kWidth = 32;

  __device__ static int64_t width() { return kWidth; }

  template <class T>
  __device__ static float load(const T* p, int64_t i, int64_t n) {
    const int64_t at = i + lane();
    return at < n ? widen(p[at]) : 0.0F;
  }
  template <class T>
  __device__ static void store(float v, T* p, int64_t i, int64_t n) {
    const int64_t at = i + lane();
    if (at < n) narrow(v, p[at]);
  }

  __device__ static float set(float x) { return x; }
  __device__ static float inside(int64_t i, int64_t n) { return i + lane() < n ? 1.0F : 0.0F; }
  __device__ static float add(float a, float b) { return a + b; }
  __device__ static float sub(float a, float b) { return a - b; }
  __device__ static float mul(float a, float b) { return a * b; }
  __device__ static float div(float a, float b) { return a / b; }
  __device__ static float max(float a, float b) { return fmaxf(a, b); }
  __device__ static float sqrt(float a) { return sqrtf(a); }
  __device__ static float fma(float a, float b, float c) { return fmaf(a, b, c); }
  __device__ static float sign(float a) { return a > 0.0F ? 1.0F : a < 0.0F ? -1.0F : 0.0F; }
  __device__ static float exp(float a) { return a < -87.0F ? 0.0F : expf(a > 88.0F ? 88.0F : a); }
  __device__ static float sum(float v) {
    for (int step = kWidth / 2; step > 0; step /= 2) v += __shfl_xor_sync(kAll, v, step);
    return v;
  }
  __device__ static float highest(float v) {
    for (int step = kWidth / 2; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(kAll, v, step));
    return v;
  }
  // The thread that writes what the whole warp knows.
  __device__ static bool first() { return lane() == 0; }

 private:
  static constexpr unsigned kAll = 0xffffffffU;

  __device__ static int lane() { return static_cast<int>(threadIdx.x % kWidth); }
  __device__ static float widen(float x) { return x; }
  __device__ static float widen(Bf16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
  __device__ static void narrow(float v, float& to) { to = v; }
  // To nearest even, NaN kept, as base/bfloat16.h does it.
  __device__ static void narrow(float v, Bf16& to) {
    const uint32_t bits = __float_as_uint(v);
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    to.bits = static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40U : rounded);
  }
};

}  // namespace snug::kernels
