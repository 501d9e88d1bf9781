#pragma once
// FlatBuffers, as far as Arrow's messages use them: tables whose fields are numbers, strings, other tables and vectors of
// these, read where they lie. Every offset is checked when it is followed. Tables may be shared, so that a small buffer can
// spell a large tree: whoever walks one must count. Knows nothing of Arrow. Source: flatbuffers.dev/internals.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace snug::arrow {

using Bytes = std::span<const std::byte>;

class Table {
 public:
  // The table that a buffer is of. The bytes must outlive it and all that it gives. Throws damaged(), as all below do.
  static Table root(Bytes bytes);

  // Fields by their place in the table's declaration, from 0; of a union its type comes before its value.
  template <typename T>
  T number(int field, T absent) const {
    const size_t at = place(field, sizeof(T));
    return at == 0 ? absent : load<T>(at);
  }
  std::string_view text(int field) const;  // empty where it is absent
  std::optional<Table> table(int field) const;

  // A vector of tables: how many there are, none where it is absent, and each by itself.
  size_t count(int field) const;
  Table element(int field, size_t i) const;

  // A vector of structures of `size` bytes each, as they stand.
  Bytes structures(int field, size_t size) const;

 private:
  Table(Bytes bytes, size_t at);

  struct Vector {
    size_t at = 0, count = 0;
  };

  template <typename T>
  T load(size_t at) const {
    require(at, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  void require(size_t at, size_t size) const;
  size_t place(int field, size_t size) const;
  size_t target(size_t at) const;
  Vector vector(int field, size_t element_size) const;

  Bytes bytes_;
  size_t at_;
  size_t offsets_ = 0, offsets_end_ = 0;  // of the table's fields
  size_t size_ = 0;                       // of the table, in bytes
};

}  // namespace snug::arrow
