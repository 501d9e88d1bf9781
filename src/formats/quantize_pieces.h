#pragma once
// A matrix of a checkpoint quantized piece by piece, so that it is never held as a whole: reading (also turned, as GPT-2's
// files need it) and codes. Who wants the codes says where they go. Nothing is allocated.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/dtype.h"
#include "formats/tensor_source.h"
#include "quantize/values.h"

namespace snug {

// What a matrix [rows, columns] becomes.
struct MatrixFormat {
  DType type = DType::nf4;  // nf4, fp4 or i8
  int64_t rows = 0, columns = 0;
  int64_t block_size = 0;  // elements to a scale; of i8: columns

  int64_t elements() const { return rows * columns; }
  int64_t scales() const { return block_count(elements(), block_size); }
  int64_t code_bytes(int64_t count) const { return type == DType::i8 ? count : count / 2 + count % 2; }
};

// Staging with which at least `at_once` bytes of the tensor are read at a time.
int64_t staging_bytes(const MatrixFormat& format, bool turned, DType stored, int64_t at_once);

// Calls visit(index of the first element, its bytes and those that follow) for all elements row by row, in pieces that end
// where codes and scales do. `turned`: the file holds it as [columns, rows]. Throws Error: another shape, not floating.
void read_pieces_of(const TensorSource& source, const TensorEntry& entry, bool turned, const MatrixFormat& format,
                    std::span<std::byte> staging, const std::function<void(int64_t, std::span<const std::byte>)>& visit);

// Codes and fp32 scales of one piece, shared out over threads. Throws Error: a number that is not finite, or too large.
void quantize_piece(const MatrixFormat& format, const Values& values, std::span<std::byte> codes, std::span<float> absmax);

}  // namespace snug
