#include "data/parquet/thrift.h"

#include "data/parquet/damaged.h"

namespace snug::parquet {
namespace {

constexpr int kDeepestStruct = 32;

ThriftType type_of(uint8_t nibble) { return static_cast<ThriftType>(nibble); }

}  // namespace

ThriftReader::Nesting::Nesting(ThriftReader& of) : reader(of) {
  if (reader.depth_ >= kDeepestStruct) damaged("its headers are nested too deep");
  ++reader.depth_;
}

uint8_t ThriftReader::byte() {
  if (at_ >= bytes_.size()) damaged("a header ends too early");
  return static_cast<uint8_t>(bytes_[at_++]);
}

uint64_t ThriftReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    value |= static_cast<uint64_t>(next & 0x7FU) << shift;
    if ((next & 0x80U) == 0) return value;
  }
  damaged("a number in a header is too long");
}

int64_t ThriftReader::zigzag() {
  const uint64_t value = varint();
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

ThriftType ThriftReader::next_field(int16_t& id) {
  const uint8_t head = byte();
  const ThriftType type = type_of(head & 0x0FU);
  if (type == ThriftType::stop) return type;
  const int delta = head >> 4;
  const int64_t next = delta != 0 ? id + delta : zigzag();
  if (next < 0 || next > INT16_MAX) damaged("a header has a field number out of range");
  id = static_cast<int16_t>(next);
  return type;
}

int64_t ThriftReader::list_header(ThriftType wanted) {
  const uint8_t head = byte();
  uint64_t size = head >> 4;
  if (size == 15) size = varint();
  if (size > 0 && type_of(head & 0x0FU) != wanted) damaged("a list in a header has elements of another type");
  if (size > bytes_.size() - at_) damaged("a list in a header is longer than the header");  // an element has a byte or more
  return static_cast<int64_t>(size);
}

int64_t ThriftReader::integer(ThriftType type) {
  if (type == ThriftType::i8) return static_cast<int8_t>(byte());
  if (type != ThriftType::i16 && type != ThriftType::i32 && type != ThriftType::i64) damaged("a header lacks a number");
  return zigzag();
}

bool ThriftReader::boolean(ThriftType type) {
  if (type != ThriftType::true_ && type != ThriftType::false_) damaged("a header lacks a truth value");
  return type == ThriftType::true_;
}

std::string_view ThriftReader::binary(ThriftType type) {
  if (type != ThriftType::binary) damaged("a header lacks a string");
  const uint64_t size = varint();
  if (size > bytes_.size() - at_) damaged("a string in a header is longer than the header");
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<size_t>(size));
  at_ += static_cast<size_t>(size);
  return text;
}

void ThriftReader::skip_items(ThriftType type, uint64_t count) {
  if (count > bytes_.size() - at_) damaged("a list in a header is longer than the header");
  for (uint64_t i = 0; i < count; ++i) {
    // A truth value is a byte of its own in a list.
    if (type == ThriftType::true_ || type == ThriftType::false_) {
      byte();
    } else {
      skip(type);
    }
  }
}

void ThriftReader::skip(ThriftType type) {
  switch (type) {
    case ThriftType::true_:
    case ThriftType::false_: return;
    case ThriftType::i8: byte(); return;
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64: varint(); return;
    case ThriftType::real:
      for (int i = 0; i < 8; ++i) byte();
      return;
    case ThriftType::binary: binary(type); return;
    case ThriftType::list:
    case ThriftType::set: {
      const Nesting nesting(*this);
      const uint8_t head = byte();
      const uint64_t size = head >> 4 == 15 ? varint() : head >> 4;
      return skip_items(type_of(head & 0x0FU), size);
    }
    case ThriftType::map: {
      const Nesting nesting(*this);
      const uint64_t size = varint();
      if (size == 0) return;
      const uint8_t types = byte();
      if (size > bytes_.size() - at_) damaged("a map in a header is longer than the header");
      for (uint64_t i = 0; i < size; ++i) {
        skip_items(type_of(types >> 4), 1);
        skip_items(type_of(types & 0x0FU), 1);
      }
      return;
    }
    case ThriftType::structure: return structure([](int16_t, ThriftType) { return false; });
    case ThriftType::stop: break;
  }
  damaged("a header has a value of an unknown type");
}

}  // namespace snug::parquet
