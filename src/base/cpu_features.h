#pragma once
// What this CPU can do beyond the instruction sets that kernels are compiled for one by one.

#include <cstdint>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace snug {

// Whether oneDNN's brgemm, which wants AVX-512, multiplies here; elsewhere our own panels do (kernels/cpu/product.h).
inline bool has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
#else
  return false;
#endif
}

// How this CPU multiplies bfloat16 and sums in fp32.
enum class Bf16Unit : uint8_t {
  none,
  dots,   // dot products of pairs in vector registers (AVX512-BF16)
  tiles,  // tile registers (Intel AMX), where Linux lets the process have them
};

// The best there is. The first call asks Linux for tile registers, for all threads.
inline Bf16Unit bf16_unit() {
#if defined(__x86_64__) && defined(__linux__)
  static const Bf16Unit unit = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxBf16) != 0 && (d & kAmxTile) != 0 &&
        syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0)
      return Bf16Unit::tiles;
    // This answer includes whether Linux saves the registers.
    return __builtin_cpu_supports("avx512bf16") != 0 ? Bf16Unit::dots : Bf16Unit::none;
  }();
  return unit;
#else
  return Bf16Unit::none;
#endif
}

inline bool multiplies_bf16() { return bf16_unit() != Bf16Unit::none; }

// Whether it does so faster than it multiplies fp32. Tiles do. A dot product is two multiplications in each lane: AMD's
// cores begin as many of them in a cycle as fused multiply-adds of vectors as wide, Intel's a quarter as many (measured on
// Sapphire Rapids, one core, operands in registers: 83 and 169 GFLOP/s).
inline bool multiplies_bf16_faster() {
#if defined(__x86_64__) && defined(__linux__)
  return bf16_unit() == Bf16Unit::tiles || (bf16_unit() == Bf16Unit::dots && __builtin_cpu_is("amd") != 0);
#else
  return false;
#endif
}

}  // namespace snug
