#include "data/arrow/flatbuffer.h"

#include "data/arrow/damaged.h"

namespace snug::arrow {

void Table::require(size_t at, size_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at) damaged("a header points behind its end");
}

Table::Table(Bytes bytes, size_t at) : bytes_(bytes), at_(at) {
  const int64_t fields = static_cast<int64_t>(at) - load<int32_t>(at);
  if (fields < 0) damaged("a header points before its start");
  const auto begin = static_cast<size_t>(fields);
  constexpr size_t kSizes = 2 * sizeof(uint16_t);  // of the offsets, these two included, and of the table
  const size_t size = load<uint16_t>(begin);
  size_ = load<uint16_t>(begin + sizeof(uint16_t));
  if (size < kSizes) damaged("a header has a table without fields");
  require(begin, size);
  require(at, size_);
  offsets_ = begin + kSizes;
  offsets_end_ = begin + size;
}

Table Table::root(Bytes bytes) {
  uint32_t at = 0;
  if (bytes.size() < sizeof at) damaged("a header is empty");
  std::memcpy(&at, bytes.data(), sizeof at);
  return {bytes, at};
}

// Where a field of `size` bytes lies; 0, where no field can be, if it is absent.
size_t Table::place(int field, size_t size) const {
  const size_t slot = offsets_ + static_cast<size_t>(field) * sizeof(uint16_t);
  if (slot + sizeof(uint16_t) > offsets_end_) return 0;
  const size_t offset = load<uint16_t>(slot);
  if (offset == 0) return 0;
  if (offset + size > size_) damaged("a header has a field outside its table");
  return at_ + offset;
}

// Where the offset at `at` leads to; offsets lead onwards only.
size_t Table::target(size_t at) const { return at + load<uint32_t>(at); }

Table::Vector Table::vector(int field, size_t element_size) const {
  const size_t at = place(field, sizeof(uint32_t));
  if (at == 0) return {};
  const size_t begin = target(at);
  const size_t count = load<uint32_t>(begin);
  if (count > bytes_.size() / element_size) damaged("a header has a list longer than itself");
  require(begin + sizeof(uint32_t), count * element_size);
  return {begin + sizeof(uint32_t), count};
}

std::string_view Table::text(int field) const {
  const Vector characters = vector(field, 1);
  return {reinterpret_cast<const char*>(bytes_.data()) + characters.at, characters.count};
}

std::optional<Table> Table::table(int field) const {
  const size_t at = place(field, sizeof(uint32_t));
  if (at == 0) return std::nullopt;
  return Table(bytes_, target(at));
}

size_t Table::count(int field) const { return vector(field, sizeof(uint32_t)).count; }

Table Table::element(int field, size_t i) const {
  const Vector elements = vector(field, sizeof(uint32_t));
  if (i >= elements.count) damaged("a header has a list that is too short");
  return {bytes_, target(elements.at + i * sizeof(uint32_t))};
}

Bytes Table::structures(int field, size_t size) const {
  const Vector elements = vector(field, size);
  return bytes_.subspan(elements.at, elements.count * size);
}

}  // namespace snug::arrow
