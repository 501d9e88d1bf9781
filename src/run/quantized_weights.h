#pragma once
// Quantized weights into the arena: from a checkpoint of numbers, quantized piece by piece through the planned staging
// buffer; or from one that bitsandbytes quantized, as it is.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "formats/checkpoint.h"

namespace snug {

// One matrix [rows, columns] in the arena: its codes and their scales, as quantize/ lays them out.
struct QuantizedMatrix {
  DType type = DType::nf4;  // nf4, fp4 or i8
  int64_t rows = 0, columns = 0;
  int64_t block_size = 0;  // of i8: columns
  std::span<std::byte> codes;
  std::span<std::byte> absmax;     // f32, or u8 where they are nested
  std::span<float> nested_absmax;  // empty: not nested
  float* offset = nullptr;         // likewise null

  bool nested() const { return offset != nullptr; }
};

// Room that the plan gives to loading. `absmax`: of the largest nested matrix; `piece`: a matrix and its scales on their way
// to the far home.
struct LoadRoom {
  std::span<std::byte> staging;
  std::span<float> absmax;
  std::span<std::byte> piece;
};

// Fills `out` from the tensor of this name. `turned`: files hold it as [columns, rows]. Throws Error: another shape, numbers
// that are not finite, a tensor that is quantized in another way.
void load_quantized(const Checkpoint& checkpoint, const TensorEntry& entry, bool turned, const QuantizedMatrix& out,
                    const LoadRoom& room);

}  // namespace snug
