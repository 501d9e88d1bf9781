#pragma once
// The JSON that bitsandbytes keeps beside each 4-bit tensor: how it is to be read (functional.py: QuantState.as_dict). Knows
// text, not files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "quantize/four_bit.h"

namespace snug {

struct QuantState {
  FourBitFormat format;
  DType dtype = DType::bf16;   // that the weight had, and is dequantized to: f32, bf16 or f16
  std::vector<int64_t> shape;  // of the weight
  bool nested = false;         // the absmax are quantized themselves
  int64_t nested_block_size = 256;
  float nested_offset = 0;

  int64_t elements() const;
  int64_t blocks() const { return block_count(elements(), format.block_size); }       // absmax
  int64_t nested_blocks() const { return block_count(blocks(), nested_block_size); }  // nested absmax
};

constexpr size_t kLargestQuantState = 4096;  // bytes of JSON

// `where`: file and tensor, for messages. Throws Error: not JSON, a field that is missing, unknown or out of range.
QuantState parse_quant_state(std::string_view json, const std::string& where);

// The JSON as bitsandbytes writes it. Where the state is nested it is filled up with spaces, so that its length does not
// depend on the offset and a file can be laid out before that is known.
std::string format_quant_state(const QuantState& state);

}  // namespace snug
