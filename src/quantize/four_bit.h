#pragma once
// bitsandbytes' 4-bit types, NF4 (QLoRA, arXiv 2305.14314) and FP4, block by block: a block's greatest magnitude is kept,
// its values over that become 4-bit codes. Two codes to a byte, the first in the high half; an odd count's last low half is
// the code of 0. Blocks run over the flattened tensor.
//
// Codes are those of the CUDA quantizer (csrc/kernels.cu: dQuantizeNF4, dQuantizeFP4, kQuantizeBlockwise) with IEEE
// arithmetic; compiled with fast math, a GPU's 1 / absmax may differ in the last bit and so, on a threshold, may a code. The
// CPU quantizer (backends/default/ops.py) differs in these ways, and is not followed:
// - FP4: its thresholds are exact midpoints, CUDA's are rounded decimals (0.583333); it may write 0 as code 8 (-0);
// - in a last, shorter block it divides by absmax, where CUDA multiplies by 1 / absmax;
// - it takes absmax below 1e-38 for 1e-38.
// Two deviations from CUDA, where that computes 0 · ∞ or ∞: a block of zeros gets the code of 0 (as on the CPU; CUDA's NF4
// code 0 means -absmax, which is not 0 once absmax is itself quantized), and blocks below 2^-128 are scaled up exactly.

#include <cstdint>
#include <span>
#include <string_view>

#include "quantize/values.h"

namespace snug {

enum class FourBit : uint8_t { nf4, fp4 };

// As quant_type has it: "nf4".
constexpr std::string_view name_of(FourBit type) { return type == FourBit::nf4 ? "nf4" : "fp4"; }

// The number that each code stands for, in units of the block's absmax; as the checkpoint's quant_map has them.
std::span<const float, 16> values_of(FourBit type);

struct FourBitFormat {
  FourBit type = FourBit::nf4;
  int64_t block_size = 64;  // a power of two, 32 to 4096
};

// Bytes of `elements` codes.
constexpr int64_t packed_bytes(int64_t elements) { return elements / 2 + elements % 2; }

// Quantizes `values`: `codes` has packed_bytes(values.count()), `absmax` block_count of them. Work is split by calling it
// with whole blocks. Throws Error: sizes that disagree, an element that is not finite.
void quantize_4bit(const FourBitFormat& format, const Values& values, std::span<uint8_t> codes, std::span<float> absmax);

// The numbers that the codes stand for: value of the code · absmax in fp32, rounded to the dtype of `out`. Throws Error
// where sizes disagree.
void dequantize_4bit(const FourBitFormat& format, std::span<const uint8_t> codes, std::span<const float> absmax,
                     const ValuesOut& out);

}  // namespace snug
