#pragma once
// Numbers of a few bits: packed one behind the other, and Parquet's hybrid of packed groups and runs, in which levels and
// dictionary indices are written. Source: parquet-format/Encodings.md.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace snug::parquet {

using Bytes = std::span<const std::byte>;

// The `width` (≤ 64) bits from `bit` on, the lowest first; they must lie within `bytes`.
inline uint64_t unpack_bits(Bytes bytes, uint64_t bit, int width) {
  if (width == 0) return 0;
  const auto at = static_cast<size_t>(bit / 8);
  const auto shift = static_cast<int>(bit % 8);
  uint64_t low = 0;
  std::memcpy(&low, bytes.data() + at, bytes.size() - at < 8 ? bytes.size() - at : 8);
  uint64_t value = low >> shift;
  if (shift + width > 64) value |= static_cast<uint64_t>(bytes[at + 8]) << (64 - shift);
  return width == 64 ? value : value & ((uint64_t{1} << width) - 1);
}

// A number of 7 bits a byte at `at`, which moves behind it. Throws damaged().
uint64_t read_varint(Bytes bytes, size_t& at);
int64_t read_zigzag(Bytes bytes, size_t& at);

// The RLE / bit-packing hybrid.
class RunDecoder {
 public:
  RunDecoder() = default;
  // Values of `width` bits. Throws damaged() above 32.
  RunDecoder(Bytes bytes, int width);

  // Throws damaged() when there are no more.
  uint32_t next() {
    if (width_ == 0) return 0;
    if (left_ == 0) next_run();
    --left_;
    if (!packed_) return value_;
    const auto value = static_cast<uint32_t>(unpack_bits(bytes_, bit_, width_));
    bit_ += static_cast<uint64_t>(width_);
    return value;
  }

 private:
  void next_run();

  Bytes bytes_;
  size_t at_ = 0;
  int width_ = 0;
  uint64_t left_ = 0;  // values of this run
  uint64_t bit_ = 0;   // of a packed run
  uint32_t value_ = 0;
  bool packed_ = false;
};

// Levels as old writers packed them: the highest bit first, without runs.
class BigEndianBits {
 public:
  BigEndianBits() = default;
  BigEndianBits(Bytes bytes, int width) : bytes_(bytes), width_(width) {}
  uint32_t next();

 private:
  Bytes bytes_;
  int width_ = 0;
  uint64_t bit_ = 0;
};

// DELTA_BINARY_PACKED: blocks of differences.
class DeltaDecoder {
 public:
  DeltaDecoder() = default;
  // Throws damaged() if the header makes no sense or declares more than `most` values.
  DeltaDecoder(Bytes bytes, uint64_t most);

  uint64_t values() const { return values_; }

  // Throws damaged() when there are no more.
  int64_t next();

  // Bytes up to the end of the last block; passes over the values that have not been read.
  size_t end();

 private:
  void read_header(uint64_t most);
  void next_block();
  void next_miniblock();

  Bytes bytes_;
  size_t at_ = 0;  // behind the header, then behind the block's widths and the miniblocks read
  uint64_t values_ = 0, given_ = 0;
  uint64_t miniblocks_ = 0, miniblock_values_ = 0;
  Bytes widths_;            // of this block's miniblocks
  uint64_t miniblock_ = 0;  // of this block: the next one
  uint64_t left_ = 0;       // values of this miniblock
  uint64_t bit_ = 0;
  int width_ = 0;
  uint64_t min_delta_ = 0, value_ = 0;
};

}  // namespace snug::parquet
