#pragma once
// Just enough of CUDA for clang to check our sources where no toolkit is installed (cmake/check_cuda.sh): qualifiers,
// launches, and the built-ins we use. Never part of a build.

#ifndef __clang__
#error "only for checks by clang without a CUDA toolkit"
#endif

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))

using size_t = decltype(sizeof(0));
using cudaStream_t = struct CUstream_st*;
struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
extern "C" __host__ int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr);
extern "C" __host__ __device__ unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0,
                                                                    void* stream = nullptr);

#include "__clang_cuda_builtin_vars.h"  // threadIdx and its like

extern "C" __device__ void* malloc(size_t bytes);
extern "C" __device__ void free(void* memory);
__device__ float __shfl_xor_sync(unsigned mask, float value, int lane_mask, int width = 32);
__device__ float __uint_as_float(unsigned bits);
__device__ unsigned __float_as_uint(float value);
__device__ float fmaxf(float a, float b);
__device__ float fmaf(float a, float b, float c);
__device__ float sqrtf(float a);
__device__ float expf(float a);
