#include "formats/quantize_pieces.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/elements.h"
#include "quantize/four_bit.h"
#include "quantize/int8_rows.h"

namespace snug {

namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;  // bytes, as much as the page cache is to hold of a file

// Elements whose codes and scales are whole: pieces end there.
int64_t grain_of(const MatrixFormat& format) {
  return format.type == DType::i8 || format.block_size % 2 == 0 ? format.block_size : 2 * format.block_size;
}

// Rows whose codes and scales are whole.
int64_t row_step(const MatrixFormat& format) {
  const int64_t grain = grain_of(format);
  return grain / std::gcd(format.columns, grain);
}

void check(const TensorSource& source, const TensorEntry& entry, bool turned, const MatrixFormat& format) {
  const DType from = entry.dtype();
  if (!is_floating(from))
    throw Error("tensor '" + entry.name + "' is " + std::string(name_of(from)), source.path().string(),
                "weights must be F32, F16 or BF16");
  if (entry.shape != (turned ? std::vector{format.columns, format.rows} : std::vector{format.rows, format.columns}))
    throw Error("tensor '" + entry.name + "' has another shape than the model's configuration says", source.path().string(),
                "use the config.json that belongs to these weights");
}

using Visit = std::function<void(int64_t, std::span<const std::byte>)>;

void read_straight(const TensorSource& source, const TensorEntry& entry, const MatrixFormat& format,
                   std::span<std::byte> staging, const Visit& visit) {
  const int64_t all = format.elements(), grain = grain_of(format), size = size_of(entry.dtype());
  const int64_t room = std::min<int64_t>(kPieceBytes, static_cast<int64_t>(staging.size())) / size;
  const int64_t most = std::max(grain, room / grain * grain);
  for (int64_t begin = 0, count = 0; begin < all; begin += count) {
    count = std::min(most, all - begin);
    const std::span<std::byte> piece = staging.first(static_cast<size_t>(count * size));
    source.read(entry, begin * size, piece);
    source.drop_behind(entry, begin * size, count * size);
    visit(begin, piece);
  }
}

// Some rows at a time, gathered from the columns that the file holds.
void read_turned(const TensorSource& source, const TensorEntry& entry, const MatrixFormat& format,
                 std::span<std::byte> staging, const Visit& visit) {
  const int64_t size = size_of(entry.dtype()), all = format.columns;
  const auto half = static_cast<int64_t>(staging.size()) / 2;
  const int64_t step = row_step(format);
  const int64_t most = std::max(step, half / (all * size) / step * step);
  for (int64_t row = 0, rows = 0; row < format.rows; row += rows) {
    rows = std::min(most, format.rows - row);
    const auto bytes = static_cast<size_t>(rows * all * size);
    const std::span<std::byte> columns = staging.first(bytes), turned = staging.subspan(bytes, bytes);
    for (int64_t c = 0; c < all; ++c)
      source.read(entry, (c * format.rows + row) * size,
                  columns.subspan(static_cast<size_t>(c * rows * size), static_cast<size_t>(rows * size)));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < all; ++c)
        std::memcpy(turned.data() + (r * all + c) * size, columns.data() + (c * rows + r) * size, static_cast<size_t>(size));
    visit(row * all, turned);
  }
  source.drop_behind(entry, 0, entry.bytes);
}

void quantize_part(const MatrixFormat& format, const Values& values, std::span<std::byte> codes, std::span<float> absmax) {
  if (format.type == DType::i8)
    return quantize_int8_rows(values, format.columns, {reinterpret_cast<int8_t*>(codes.data()), codes.size()}, absmax);
  quantize_4bit({format.type == DType::nf4 ? FourBit::nf4 : FourBit::fp4, format.block_size}, values,
                {reinterpret_cast<uint8_t*>(codes.data()), codes.size()}, absmax);
}

}  // namespace

int64_t staging_bytes(const MatrixFormat& format, bool turned, DType stored, int64_t at_once) {
  const int64_t least = turned ? row_step(format) * format.columns : grain_of(format);
  return std::max(at_once, least * size_of(stored)) * (turned ? 2 : 1);
}

void read_pieces_of(const TensorSource& source, const TensorEntry& entry, bool turned, const MatrixFormat& format,
                    std::span<std::byte> staging, const Visit& visit) {
  check(source, entry, turned, format);
  (turned ? read_turned : read_straight)(source, entry, format, staging, visit);
}

void quantize_piece(const MatrixFormat& format, const Values& values, std::span<std::byte> codes, std::span<float> absmax) {
  constexpr int64_t kGrains = 512;
  const int64_t size = size_of(values.dtype), count = values.count(), step = kGrains * grain_of(format);
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
  for (int64_t at = 0; at < count; at += step) {
    try {
      const int64_t part = std::min(step, count - at);
      const auto bytes = values.bytes.subspan(static_cast<size_t>(at * size), static_cast<size_t>(part * size));
      quantize_part(format, {bytes, values.dtype, values.first + at, values.where},
                    codes.subspan(static_cast<size_t>(format.code_bytes(at)), static_cast<size_t>(format.code_bytes(part))),
                    absmax.subspan(static_cast<size_t>(at / format.block_size),
                                   static_cast<size_t>(block_count(part, format.block_size))));
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace snug
