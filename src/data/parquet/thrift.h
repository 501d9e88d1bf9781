#pragma once
// Apache Thrift's compact protocol, as far as Parquet's footer and page headers use it: a cursor over bytes that reads
// structures field by field and passes over what the caller does not want. Depth and sizes are bounded by the bytes there
// are. Knows nothing of Parquet. Source: thrift/doc/specs/thrift-compact-protocol.md.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace snug::parquet {

enum class ThriftType : uint8_t {
  stop = 0,
  true_ = 1,
  false_ = 2,
  i8 = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  real = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12
};

class ThriftReader {
 public:
  explicit ThriftReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Bytes read so far.
  size_t position() const { return at_; }

  // Reads a structure: `field(id, type)` is called for each field and returns true if it has read the value; others are
  // passed over. Throws damaged() if the bytes end before or make no sense.
  template <typename Field>
  void structure(const Field& field) {
    const Nesting nesting(*this);
    int16_t id = 0;
    for (ThriftType type = next_field(id); type != ThriftType::stop; type = next_field(id))
      if (!field(id, type)) skip(type);
  }

  // Reads a list of `wanted`: `item()` is called for each element and must read it.
  template <typename Item>
  void list(ThriftType wanted, const Item& item) {
    const int64_t size = list_header(wanted);
    for (int64_t i = 0; i < size; ++i) item();
  }

  // Values of a field of type `type`; each throws if the type is another.
  int64_t integer(ThriftType type);
  bool boolean(ThriftType type);
  std::string_view binary(ThriftType type);

  // Passes over a value.
  void skip(ThriftType type);

 private:
  struct Nesting {
    explicit Nesting(ThriftReader& of);
    ~Nesting() { --reader.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ThriftReader& reader;
  };

  ThriftType next_field(int16_t& id);
  int64_t list_header(ThriftType wanted);
  void skip_items(ThriftType type, uint64_t count);
  uint8_t byte();
  uint64_t varint();
  int64_t zigzag();

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace snug::parquet
