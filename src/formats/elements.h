#pragma once
// Elements of a file's tensor as numbers and back: F32, F16 and BF16, the types that weights come in. Reads bytes at any
// alignment. Knows nothing of tensors.

#include <cstddef>
#include <span>

#include "base/dtype.h"

namespace snug {

// True for the types that the following two take.
bool is_floating(DType dtype);

// `bytes` hold out.size() elements of `dtype`. Throws Error for a type that is not floating.
void decode_elements(std::span<const std::byte> bytes, DType dtype, std::span<float> out);

// The opposite, rounding to nearest even.
void encode_elements(std::span<const float> values, DType dtype, std::span<std::byte> out);

}  // namespace snug
