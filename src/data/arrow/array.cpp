#include "data/arrow/array.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/float16.h"
#include "data/arrow/damaged.h"

namespace snug::arrow {
namespace {

constexpr int64_t kMostLength = std::numeric_limits<int32_t>::max();  // as the format recommends
constexpr size_t kExtent = 2 * sizeof(int64_t);

enum BatchPlace : uint8_t { kLength = 0, kNodes = 1, kBuffers = 2, kCompression = 3 };  // fields of RecordBatch

template <typename T>
T load(Bytes bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

bool bit(Buffer& bits, int64_t i) {
  constexpr int64_t kByte = 8;
  return (static_cast<unsigned>(bits.at(i / kByte, 1).front()) >> (i % kByte) & 1U) != 0;
}

int64_t bytes_of_bits(int64_t bits) { return bits / 8 + (bits % 8 != 0 ? 1 : 0); }

void require(bool holds, const Field& field, const char* what) {
  if (!holds) damaged("column \"" + field.path.substr(0, 80) + "\" " + what);
}

}  // namespace

bool Array::is_null(int64_t i) { return field_->kind == Kind::null || (has_nulls_ && !bit(validity_, i)); }

bool Array::boolean(int64_t i) { return bit(values_, i); }

int64_t Array::whole(int64_t i, int width, bool is_signed) {
  const Bytes bytes = values_.at(i * width, width);
  switch (width) {
    case 1: return is_signed ? int64_t{load<int8_t>(bytes)} : int64_t{load<uint8_t>(bytes)};
    case 2: return is_signed ? int64_t{load<int16_t>(bytes)} : int64_t{load<uint16_t>(bytes)};
    case 4: return is_signed ? int64_t{load<int32_t>(bytes)} : int64_t{load<uint32_t>(bytes)};
    default: return load<int64_t>(bytes);
  }
}

int64_t Array::integer(int64_t i) { return whole(i, field_->width, field_->is_signed); }

int64_t Array::index(int64_t i) { return whole(i, field_->dictionary->index_width, field_->dictionary->index_signed); }

double Array::real(int64_t i) {
  const Bytes bytes = values_.at(i * field_->width, field_->width);
  switch (field_->width) {
    case 2: return static_cast<double>(f16_to_f32(load<uint16_t>(bytes)));
    case 4: return static_cast<double>(load<float>(bytes));
    default: return load<double>(bytes);
  }
}

Array::Range Array::range(int64_t i) {
  Range range{};
  if (field_->kind == Kind::fixed_list) {
    range = {i * field_->list_size, (i + 1) * field_->list_size};
  } else {
    const int width = field_->width;
    const Bytes pair = offsets_.at(i * width, int64_t{2} * width);
    range = width == 4 ? Range{load<int32_t>(pair), load<int32_t>(pair.subspan(4))}
                       : Range{load<int64_t>(pair), load<int64_t>(pair.subspan(8))};
  }
  const int64_t most = children_.empty() ? values_.size() : children_.front().length_;
  require(range.begin >= taken_ && range.begin <= range.end && range.end <= most, *field_, "has offsets out of order");
  taken_ = range.end;
  return range;
}

std::string_view Array::text(Range range) {
  if (range.begin == range.end) return {};
  const Bytes bytes = values_.at(range.begin, range.end - range.begin);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

BatchReader::BatchReader(const InputFile& file, const Message& message, const Table& batch)
    : file_(file), body_(message.body), body_bytes_(message.body_bytes), rows_(batch.number<int64_t>(kLength, 0)) {
  if (rows_ < 0) damaged("a batch has a length below 0");
  nodes_ = batch.structures(kNodes, kExtent);
  buffers_ = batch.structures(kBuffers, kExtent);
  if (const std::optional<Table> compression = batch.table(kCompression)) {
    constexpr uint8_t kLz4 = 0, kZstandard = 1;
    const auto codec = compression->number<uint8_t>(0, kLz4);
    if (codec == kLz4) unsupported("compression LZ4");
    if (codec != kZstandard) unsupported("a compression that is not in Arrow's list");
    zstandard_ = true;
  }
}

BatchReader::Extent BatchReader::next(Bytes& from) const {
  if (from.empty()) damaged("a batch has fewer arrays than the schema");
  const Extent extent{load<int64_t>(from), load<int64_t>(from.subspan(sizeof(int64_t)))};
  from = from.subspan(kExtent);
  return extent;
}

// Buffers do not overlap, so that all of a batch are no longer than its body.
Buffer BatchReader::next_buffer() {
  const auto [offset, size] = next(buffers_);
  if (offset < 0 || size < 0 || offset > body_bytes_ || size > body_bytes_ - offset)
    damaged("a buffer lies outside its message");
  bytes_taken_ = checked_add(bytes_taken_, size);
  if (bytes_taken_ > body_bytes_) damaged("buffers overlap");
  return zstandard_ ? Buffer::zstandard(file_, body_ + offset, size) : Buffer::plain(file_, body_ + offset, size);
}

Array BatchReader::take(const Field& field) {
  const auto [length, nulls] = next(nodes_);
  require(length >= 0 && nulls >= 0 && nulls <= length, field, "has an impossible length");
  if (length > kMostLength) unsupported("an array of more than 2,147,483,647 values");
  Array array(field, length, nulls > 0);
  take_buffers(array);
  for (const Field& child : field.children) {
    array.children_.push_back(take(child));
    const int64_t there = array.children_.back().length_;
    require(field.kind != Kind::object || there >= length, child, "has fewer values than its neighbours");
    require(
        field.kind != Kind::fixed_list || there / std::max<int64_t>(field.list_size, 1) >= length || field.list_size == 0,
        child, "has fewer values than its lists");
  }
  return array;
}

void BatchReader::take_buffers(Array& array) {
  const Field& field = *array.field_;
  if (field.buffers > 0) {
    array.validity_ = next_buffer();
    require(!array.has_nulls_ || array.validity_.size() >= bytes_of_bits(array.length_), field, "has a bitmap too short");
  }
  const bool text = field.kind == Kind::text && !field.dictionary;
  const bool offsets = text || field.kind == Kind::list || field.kind == Kind::map;
  if (offsets) {
    array.offsets_ = next_buffer();
    const int64_t wanted = array.length_ == 0 ? 0 : (array.length_ + 1) * field.width;
    require(array.offsets_.size() >= wanted, field, "has too few offsets");
  }
  for (int i = offsets ? 2 : 1; i < field.buffers; ++i) array.values_ = next_buffer();
  int64_t wanted = array.length_ * field.width;
  if (field.dictionary) wanted = array.length_ * field.dictionary->index_width;
  if (field.kind == Kind::boolean) wanted = bytes_of_bits(array.length_);
  const bool values =
      field.dictionary || field.kind == Kind::boolean || field.kind == Kind::integer || field.kind == Kind::real;
  require(!values || array.values_.size() >= wanted, field, "has too few values");
}

void BatchReader::pass(const Field& field) {
  next(nodes_);
  for (int i = 0; i < field.buffers; ++i) next(buffers_);
  for (const Field& child : field.children) pass(child);
}

void BatchReader::finish() const {
  if (!nodes_.empty() || !buffers_.empty()) damaged("a batch has more arrays than the schema");
}

}  // namespace snug::arrow
