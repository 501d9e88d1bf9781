#pragma once
// What kernels are handed: pointers, dtypes, a cut, and bytes to scribble on. The header of each op in `ops/` has its struct
// of named arguments, the kernel's declaration, and how the struct comes from an op's view. A kernel allocates nothing,
// keeps no state between calls and knows no model or plan. These headers compile as CUDA too.
//
// Letters: B sequences, T tokens a sequence, M = B*T rows, C hidden, F MLP width, V vocabulary, H query heads, K key/value
// heads, D head size, R LoRA rank. Everything is row-major and dense. Arithmetic is fp32 whatever the storage dtype, but for
// products that their cut has in bf16 (base/arithmetic.h); storing bf16 rounds to nearest even.

#include <cstdint>

#include "base/activation.h"
#include "base/arithmetic.h"
#include "base/dtype.h"
#include "base/scalars.h"
#include "op/attributes.h"

namespace snug::kernels {

using Cut = OpCut;

// What the codes of a quantized matrix (nf4, fp4, i8) are multiplied by: one number for each block of elements, counted over
// the flattened matrix; i8 codes are hundred-and-twenty-sevenths of it. In nested form it is
// map[code] * nested_absmax[block / kNestedBlock] + offset, of the signed dynamic map (base/dynamic_map.h).
struct Scales {
  const void* absmax = nullptr;          // [blocks] f32, or u8 in nested form
  const float* nested_absmax = nullptr;  // null: not nested
  const float* offset = nullptr;         // [1], in nested form
  int64_t block_size = 0;                // elements; for 4-bit codes an even number
  DType values = DType::f32;             // what the products are rounded to: f32, f16 or bf16
};

// A dense matrix, or a vector with rows = 1. `data` may be null where the op says so. Quantized matrices are read by
// products alone, as their b.
struct In {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t first = 0;  // of a quantized matrix: the element it begins with, in its blocks
  Scales scales = {};
};
struct Out {
  void* data = nullptr;
  DType dtype = DType::f32;
};

// Bytes an op may scribble on during its call, 64-byte aligned.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
};

using snug::kNestedBlock;
using snug::kScalarCount;
using snug::kSquareSumBlock;
using snug::kStateBlock;
using snug::Scalar;
using Scalars = double;  // pointer to kScalarCount of them

}  // namespace snug::kernels
