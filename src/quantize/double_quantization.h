#pragma once
// Double quantization (QLoRA, arXiv 2305.14314, section 3): the absmax of 4-bit blocks are themselves kept in 8 bits. Their
// mean is taken off, the rest is quantized with the signed dynamic map in blocks of 256 (functional.py:quantize_4bit,
// compress_statistics=True).

#include <cstdint>
#include <span>

#include "base/dynamic_map.h"

namespace snug {

constexpr int64_t kNestedBlockSize = 256;  // absmax to one nested absmax

// The mean of a tensor's absmax (0 of none), summed in double and rounded once. PyTorch sums in float32, in an order that
// depends on the machine, so its mean may differ by a few ulp; readers take the stored one.
float nested_offset(std::span<const float> absmax);

// `codes`: as many as absmax; `nested_absmax`: block_count(absmax.size(), 256). Work is split by calling it with whole
// blocks. Throws Error: sizes that disagree, numbers that are not finite.
void quantize_absmax(std::span<const float> absmax, float offset, std::span<uint8_t> codes, std::span<float> nested_absmax);

// map[code] · nested absmax + offset, each rounded to fp32. `map` and `block_size`: as the checkpoint has them. Throws Error
// where sizes disagree.
void dequantize_absmax(std::span<const float, 256> map, int64_t block_size, std::span<const uint8_t> codes,
                       std::span<const float> nested_absmax, float offset, std::span<float> absmax);

}  // namespace snug
