#pragma once
// multiply_tile of bf16_tiles.h by each means that a CPU may have; a caller knows that it is there (base/cpu_features.h).

#include "kernels/cpu/bf16_tiles.h"

#if defined(__x86_64__)

namespace snug::kernels::amx {

// Of the calling thread's tile registers: before its first product, after its last.
void configure();
void release();
void multiply_tile(const TileFactors& factors, float* c, int64_t c_stride, bool accumulate);

}  // namespace snug::kernels::amx

namespace snug::kernels::avx512 {

void multiply_tile(const TileFactors& factors, float* c, int64_t c_stride, bool accumulate);

}  // namespace snug::kernels::avx512

#endif
