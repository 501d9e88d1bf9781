#pragma once
// The scales that an op reads beside a quantized matrix (passes/quantize.h): shapes, and their way into its adjoint.

#include "base/scalars.h"
#include "program/rules.h"

namespace snug {

// `back` reads the b of `op` too.
inline void read_scales(const Op& op, Op& back) {
  if (op.find(Slot::absmax) == kNone) return;
  back.attributes.block_size = op.attributes.block_size;
  back.attributes.values = op.attributes.values;
  for (const Slot slot : {Slot::absmax, Slot::nested_absmax, Slot::absmax_offset})
    if (op.find(slot) != kNone) back.reads(slot, op.find(slot));
}

// Of each matrix: blocks of absmax; where those are codes, one nested absmax for kNestedBlock of them and one offset.
inline void check_scales(const Program& program, const Op& op, Slot matrix = Slot::b) {
  const Tensor& b = program.tensor(op.find(matrix));
  const bool codes = is_4bit(b.dtype) || b.dtype == DType::i8;
  expect(codes == (op.find(Slot::absmax) != kNone), op, "codes have scales");
  if (!codes) return;
  const int64_t matrices = b.shape.size() == 3 ? b.dim(0) : 1;
  const auto parts = [](int64_t all, int64_t part) { return (all + part - 1) / part; };
  const int64_t blocks = parts(b.elements() / matrices, op.attributes.block_size);
  const Tensor& absmax = program.tensor(op.find(Slot::absmax));
  expect(absmax.elements() == matrices * blocks, op, "every block has a scale");
  const bool nested = op.find(Slot::nested_absmax) != kNone;
  expect(nested == (absmax.dtype == DType::u8), op, "codes of scales are nested");
  if (!nested) return;
  const int64_t nested_blocks = parts(blocks, kNestedBlock);
  expect(program.tensor(op.find(Slot::nested_absmax)).elements() == matrices * nested_blocks, op, "nested scales");
  expect(program.tensor(op.find(Slot::absmax_offset)).elements() == matrices, op, "one offset for a matrix");
}

}  // namespace snug
