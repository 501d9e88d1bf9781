#pragma once
// The instruction sets that one binary holds: AVX-512, AVX2, NEON, and plain code for the rest. Include before any Highway
// header, in every file that includes one, so that all agree. (SVE has no arrays of vectors, which our register blocks are
// made of.) SNUG_PLAIN_KERNELS: plain code alone.

#ifdef SNUG_PLAIN_KERNELS
#define HWY_COMPILE_ONLY_EMU128
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
