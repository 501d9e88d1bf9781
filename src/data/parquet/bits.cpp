#include "data/parquet/bits.h"

#include <algorithm>

#include "data/parquet/damaged.h"

namespace snug::parquet {

uint64_t read_varint(Bytes bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at >= bytes.size()) damaged("a page ends too early");
    const auto next = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(next & 0x7FU) << shift;
    if ((next & 0x80U) == 0) return value;
  }
  damaged("a number in a page is too long");
}

int64_t read_zigzag(Bytes bytes, size_t& at) {
  const uint64_t value = read_varint(bytes, at);
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

RunDecoder::RunDecoder(Bytes bytes, int width) : bytes_(bytes), width_(width) {
  if (width < 0 || width > 32) damaged("a page has values of " + std::to_string(width) + " bits");
}

void RunDecoder::next_run() {
  while (left_ == 0) {
    const uint64_t head = read_varint(bytes_, at_);
    packed_ = (head & 1) != 0;
    if (packed_) {
      // A last group may be cut off where no more values are needed.
      const uint64_t bits = (bytes_.size() - at_) * 8;
      const uint64_t groups = std::min<uint64_t>(head >> 1, bits / 8 + 1);
      left_ = std::min(groups * 8, bits / static_cast<uint64_t>(width_));
      bit_ = at_ * 8;
      at_ += std::min<size_t>(static_cast<size_t>(groups) * static_cast<size_t>(width_), bytes_.size() - at_);
    } else {
      left_ = head >> 1;
      const auto size = static_cast<size_t>(width_ + 7) / 8;
      if (bytes_.size() - at_ < size) damaged("a page ends too early");
      value_ = static_cast<uint32_t>(unpack_bits(bytes_.subspan(at_, size), 0, static_cast<int>(size) * 8));
      at_ += size;
    }
  }
}

uint32_t BigEndianBits::next() {
  if (bit_ + static_cast<uint64_t>(width_) > bytes_.size() * 8) damaged("a page ends too early");
  uint32_t value = 0;
  for (int i = 0; i < width_; ++i, ++bit_) {
    const auto byte = static_cast<uint32_t>(bytes_[static_cast<size_t>(bit_ / 8)]);
    value = value << 1 | (byte >> (7 - bit_ % 8) & 1U);
  }
  return value;
}

DeltaDecoder::DeltaDecoder(Bytes bytes, uint64_t most) : bytes_(bytes) { read_header(most); }

void DeltaDecoder::read_header(uint64_t most) {
  constexpr uint64_t kLargestBlock = 1U << 20;
  const uint64_t block = read_varint(bytes_, at_);
  miniblocks_ = read_varint(bytes_, at_);
  values_ = read_varint(bytes_, at_);
  value_ = static_cast<uint64_t>(read_zigzag(bytes_, at_));
  if (block == 0 || block > kLargestBlock || miniblocks_ == 0 || block % miniblocks_ != 0 || block / miniblocks_ % 8 != 0)
    damaged("a page has blocks of an impossible size");
  if (values_ > most) damaged("a page holds more values than it declares");
  miniblock_values_ = block / miniblocks_;
  miniblock_ = miniblocks_;
}

void DeltaDecoder::next_block() {
  min_delta_ = static_cast<uint64_t>(read_zigzag(bytes_, at_));
  if (bytes_.size() - at_ < miniblocks_) damaged("a page ends too early");
  widths_ = bytes_.subspan(at_, static_cast<size_t>(miniblocks_));
  at_ += widths_.size();
  miniblock_ = 0;
}

void DeltaDecoder::next_miniblock() {
  if (miniblock_ == miniblocks_) next_block();
  width_ = static_cast<int>(widths_[static_cast<size_t>(miniblock_++)]);
  if (width_ > 64) damaged("a page has values of " + std::to_string(width_) + " bits");
  const uint64_t wanted = std::min(miniblock_values_, values_ - given_) * static_cast<uint64_t>(width_);
  const uint64_t there = (bytes_.size() - at_) * 8;
  if (wanted > there) damaged("a page ends too early");
  bit_ = at_ * 8;
  left_ = miniblock_values_;
  at_ += std::min<size_t>(static_cast<size_t>(miniblock_values_ * static_cast<uint64_t>(width_) / 8), bytes_.size() - at_);
}

int64_t DeltaDecoder::next() {
  if (given_ >= values_) damaged("a page holds fewer values than it declares");
  if (given_ > 0) {
    if (left_ == 0) next_miniblock();
    --left_;
    value_ += min_delta_ + unpack_bits(bytes_, bit_, width_);
    bit_ += static_cast<uint64_t>(width_);
  }
  ++given_;
  return static_cast<int64_t>(value_);
}

size_t DeltaDecoder::end() {
  while (given_ < values_) next();
  return at_;
}

}  // namespace snug::parquet
