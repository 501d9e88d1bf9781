#pragma once
// Quantized weights in checkpoints, as bitsandbytes and transformers write them. A 4-bit weight W is a tensor of bytes with
// companions: W.absmax, W.quant_map, W.quant_state.bitsandbytes__nf4 (or __fp4), and where the absmax are quantized too
// W.nested_absmax and W.nested_quant_map. An LLM.int8 weight is X.weight (int8) with X.SCB (a scale for each row) and
// X.weight_format. Knows names and sizes; numbers are the business of src/quantize.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/quant_state.h"
#include "formats/safetensors_writer.h"

namespace snug {

// A 4-bit weight of a checkpoint; the entries live as long as that does.
struct FourBitTensor {
  std::string name;
  QuantState state;
  const TensorEntry* codes = nullptr;          // packed_bytes(state.elements()) bytes, of any dtype
  const TensorEntry* absmax = nullptr;         // state.blocks() codes (u8) if nested, else f32
  const TensorEntry* nested_absmax = nullptr;  // state.nested_blocks() f32; null if not nested
  std::array<float, 256> nested_map{};         // what absmax codes stand for, if nested
};

// An LLM.int8 weight.
struct Int8Tensor {
  std::string name;
  int64_t rows = 0, columns = 0;
  const TensorEntry* codes = nullptr;   // i8 [rows, columns]
  const TensorEntry* absmax = nullptr;  // f32, one for each row
};

// The weight that a companion belongs to: of "W.absmax" it is "W", of "X.SCB" "X.weight". Empty for other names.
std::string companion_of(std::string_view name);

// Describes the weight `name`; none if it is not quantized so. Throws Error naming file and tensor: a companion that is
// missing or of the wrong size or dtype, a quant_state or a map that is not bitsandbytes'.
std::optional<FourBitTensor> find_four_bit(const Checkpoint& checkpoint, std::string_view name);
std::optional<Int8Tensor> find_int8(const Checkpoint& checkpoint, std::string_view name);

// The scales of blocks [begin, begin + out.size()) of a 4-bit weight, dequantized where they are nested. Throws Error if one
// is not finite.
void read_absmax(const Checkpoint& checkpoint, const FourBitTensor& tensor, int64_t begin, std::span<float> out);

// The scales of rows [begin, begin + out.size()). Throws Error if one is negative or not finite.
void read_absmax(const Checkpoint& checkpoint, const Int8Tensor& tensor, int64_t begin, std::span<float> out);

// A tensor of a file to be written, with its bytes where they follow from the description alone; else they are empty, and
// the caller's to give.
struct TensorWithBytes {
  TensorToWrite tensor;
  std::vector<std::byte> bytes;
};

// The tensors of a 4-bit weight: codes, absmax (and nested_absmax) without bytes, then the maps and quant_state. Sizes do
// not depend on state.nested_offset.
std::vector<TensorWithBytes> four_bit_tensors(const std::string& name, const QuantState& state);

// Those of an LLM.int8 weight, whose name must end in ".weight": codes and SCB without bytes, then weight_format. Throws
// Error.
std::vector<TensorWithBytes> int8_tensors(const std::string& name, int64_t rows, int64_t columns);

}  // namespace snug
