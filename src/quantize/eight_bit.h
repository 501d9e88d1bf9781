#pragma once
// Block-wise 8-bit quantization with bitsandbytes' dynamic maps (quantize_blockwise): a code for each value over its block's
// greatest magnitude. Codes are those of the CUDA quantizer (csrc/kernels.cu: dQuantize; see base/dynamic_map.h) with IEEE
// arithmetic. A block of zeros gets codes 0, as both of bitsandbytes' quantizers give it: with the signed map they stand for
// -0.993 · 0.

#include <cstdint>
#include <span>

#include "base/dynamic_map.h"
#include "quantize/values.h"

namespace snug {

// `codes`: one for each value; `absmax`: one for each block of `block_size` (a power of two, 32 to 4096). Work is split by
// calling it with whole blocks. Throws Error: sizes that disagree, an element that is not finite.
void quantize_8bit(const DynamicMap& map, int64_t block_size, const Values& values, std::span<uint8_t> codes,
                   std::span<float> absmax);

// map[code] · absmax in fp32, rounded to the dtype of `out`. `map`: 256 floats, also those that a checkpoint brings. Throws
// Error where sizes disagree.
void dequantize_8bit(std::span<const float, 256> map, int64_t block_size, std::span<const uint8_t> codes,
                     std::span<const float> absmax, const ValuesOut& out);

}  // namespace snug
