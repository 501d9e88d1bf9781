#pragma once
// What this CPU can do beyond the instruction sets that kernels are compiled for one by one.

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace snug {

// Whether this process may multiply tiles of bfloat16 (Intel AMX): the CPU has it and the kernel saves its registers. The
// first call asks Linux for them, for all threads.
inline bool multiplies_bf16_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  static const bool answer = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return answer;
#else
  return false;
#endif
}

}  // namespace snug
