#pragma once
// Numbers as a caller hands them over to be quantized, or wants them back: fp32, bf16 or fp16 bytes at any alignment. The
// quantizers work on pieces of at most kPiece of them, as fp32 on the stack, so that nothing is allocated.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/element_count.h"

namespace snug {

struct Values {
  std::span<const std::byte> bytes;
  DType dtype = DType::f32;  // f32, bf16 or f16
  int64_t first = 0;         // index of the first element in its tensor, for messages
  std::string_view where;    // file and tensor, for messages

  int64_t count() const { return element_count(dtype, static_cast<int64_t>(bytes.size())); }
};

struct ValuesOut {
  std::span<std::byte> bytes;
  DType dtype = DType::f32;

  int64_t count() const { return element_count(dtype, static_cast<int64_t>(bytes.size())); }
};

constexpr int64_t kPiece = 4096;  // elements; also the largest block

// Blocks of `block_size` that hold `elements`; the last may be shorter.
constexpr int64_t block_count(int64_t elements, int64_t block_size) {
  return elements / block_size + (elements % block_size != 0 ? 1 : 0);
}

// Throws Error unless it is a power of two from 32 to kPiece.
void check_block_size(int64_t block_size);

// Throws Error for a dtype that is not floating, or bytes that are not whole elements.
void check_values(std::span<const std::byte> bytes, DType dtype);

// Elements [begin, begin + out.size()) as fp32, exactly; at most kPiece.
void widen(const Values& values, int64_t begin, std::span<float> out);

// The opposite, rounding to nearest even.
void narrow(std::span<const float> values, const ValuesOut& out, int64_t begin);

// The greatest magnitude of a block; not finite if a value is not.
float absmax_of(std::span<const float> block);

// Throws Error naming the first element of the block that is not finite; `begin` is the block's first element in `values`.
[[noreturn]] void refuse_non_finite(std::span<const float> block, const Values& values, int64_t begin);

// What a block's values are multiplied by to lie in [-1, 1]: 1 / absmax, as bitsandbytes has it. Where that overflows
// (absmax
// <= 2^-128) the block is first scaled up by a power of two; where absmax is 0 the answer is 0.
float scale_to_one(std::span<float> block, float absmax);

}  // namespace snug
