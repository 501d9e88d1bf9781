#include "data/parquet/values.h"

#include <array>
#include <cstring>
#include <string>

#include "data/parquet/damaged.h"

namespace snug::parquet {
namespace {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// A value of fixed width at `from`.
Scalar scalar_at(const std::byte* from, Physical type) {
  switch (type) {
    case Physical::int32: return {load<int32_t>(from), 0.0, {}};
    case Physical::int64: return {load<int64_t>(from), 0.0, {}};
    case Physical::float32: return {0, static_cast<double>(load<float>(from)), {}};
    default: return {0, load<double>(from), {}};
  }
}

size_t width_of(Physical type, int64_t type_length) {
  switch (type) {
    case Physical::int32:
    case Physical::float32: return 4;
    case Physical::int64:
    case Physical::float64: return 8;
    case Physical::fixed_len_byte_array: return static_cast<size_t>(type_length);
    default: return 0;
  }
}

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The front `size` bytes of `rest`, which loses them.
Bytes take_values(Bytes& rest, size_t size) {
  if (size > rest.size()) damaged("a page ends too early");
  const Bytes front = rest.first(size);
  rest = rest.subspan(size);
  return front;
}

class PlainDecoder final : public ValueDecoder {
 public:
  PlainDecoder(Bytes bytes, Physical type, int64_t type_length)
      : rest_(bytes), type_(type), width_(width_of(type, type_length)) {}

  bool at_end() const { return rest_.empty(); }

  Scalar next() override {
    if (type_ == Physical::boolean) {
      if (bit_ >= rest_.size() * 8) damaged("a page ends too early");
      return {static_cast<int64_t>(unpack_bits(rest_, bit_++, 1)), 0.0, {}};
    }
    if (type_ == Physical::byte_array)
      return {0, 0.0, text_of(take_values(rest_, load<uint32_t>(take_values(rest_, 4).data())))};
    const Bytes value = take_values(rest_, width_);
    if (type_ == Physical::fixed_len_byte_array) return {0, 0.0, text_of(value)};
    return scalar_at(value.data(), type_);
  }

 private:
  Bytes rest_;
  Physical type_;
  size_t width_;
  uint64_t bit_ = 0;
};

class DictionaryDecoder final : public ValueDecoder {
 public:
  DictionaryDecoder(Bytes bytes, const Dictionary& dictionary) : dictionary_(dictionary) {
    // A page of nulls alone may have no bytes at all.
    if (!bytes.empty()) indices_ = RunDecoder(bytes.subspan(1), static_cast<int>(bytes.front()));
  }

  Scalar next() override {
    const uint32_t index = indices_.next();
    if (index >= dictionary_.size()) damaged("a page names a value that its dictionary lacks");
    return dictionary_[index];
  }

 private:
  const Dictionary& dictionary_;
  RunDecoder indices_;
};

class RunBooleanDecoder final : public ValueDecoder {
 public:
  explicit RunBooleanDecoder(Bytes bytes) {
    if (bytes.empty()) return;
    Bytes rest = bytes;
    const auto size = load<uint32_t>(take_values(rest, 4).data());
    runs_ = RunDecoder(take_values(rest, size), 1);
  }
  Scalar next() override { return {runs_.next(), 0.0, {}}; }

 private:
  RunDecoder runs_{{}, 1};
};

class DeltaIntegerDecoder final : public ValueDecoder {
 public:
  DeltaIntegerDecoder(Bytes bytes, uint64_t most, Physical type)
      : deltas_(bytes.empty() ? DeltaDecoder() : DeltaDecoder(bytes, most)), narrow_(type == Physical::int32) {}
  Scalar next() override {
    const int64_t value = deltas_.next();
    return {narrow_ ? static_cast<int32_t>(value) : value, 0.0, {}};
  }

 private:
  DeltaDecoder deltas_;
  bool narrow_;
};

// The lengths of all strings, then their bytes.
class DeltaLengthDecoder final : public ValueDecoder {
 public:
  DeltaLengthDecoder(Bytes bytes, uint64_t most) {
    if (bytes.empty()) return;
    lengths_ = DeltaDecoder(bytes, most);
    rest_ = bytes.subspan(DeltaDecoder(lengths_).end());
  }
  Scalar next() override {
    const int64_t length = lengths_.next();
    if (length < 0) damaged("a string has a length below 0");
    return {0, 0.0, text_of(take_values(rest_, static_cast<size_t>(length)))};
  }

 private:
  DeltaDecoder lengths_;
  Bytes rest_;
};

// Each string as the bytes that it shares with the one before, and the others.
class DeltaStringDecoder final : public ValueDecoder {
 public:
  DeltaStringDecoder(Bytes bytes, uint64_t most)
      : prefixes_(bytes.empty() ? DeltaDecoder() : DeltaDecoder(bytes, most)),
        suffixes_(bytes.empty() ? bytes : bytes.subspan(DeltaDecoder(prefixes_).end()), most) {}
  Scalar next() override {
    const int64_t shared = prefixes_.next();
    if (shared < 0 || shared > static_cast<int64_t>(value_.size())) damaged("a string shares more than the one before has");
    value_.resize(static_cast<size_t>(shared));
    value_ += suffixes_.next().text;
    return {0, 0.0, value_};
  }

 private:
  DeltaDecoder prefixes_;
  DeltaLengthDecoder suffixes_;
  std::string value_;
};

// The first bytes of all values, then the second ones, …
class StreamSplitDecoder final : public ValueDecoder {
 public:
  StreamSplitDecoder(Bytes bytes, Physical type, int64_t type_length)
      : bytes_(bytes), type_(type), value_(width_of(type, type_length)), values_(bytes.size() / value_.size()) {}
  Scalar next() override {
    if (at_ >= values_) damaged("a page ends too early");
    for (size_t i = 0; i < value_.size(); ++i) value_[i] = bytes_[i * values_ + at_];
    ++at_;
    if (type_ == Physical::fixed_len_byte_array) return {0, 0.0, text_of(value_)};
    return scalar_at(value_.data(), type_);
  }

 private:
  Bytes bytes_;
  Physical type_;
  std::vector<std::byte> value_;
  size_t values_, at_ = 0;
};

std::string name_of(Encoding encoding) {
  constexpr std::array<const char*, 10> kNames = {
      "PLAIN",          "GROUP_VAR_INT",       "PLAIN_DICTIONARY",        "RLE",
      "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
      "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"};
  const auto i = static_cast<size_t>(encoding);
  return i < kNames.size() ? kNames[i] : "number " + std::to_string(i);
}

}  // namespace

Dictionary read_dictionary(Bytes bytes, int64_t values, Physical type, int64_t type_length) {
  if (type == Physical::boolean) damaged("truth values have a dictionary");
  const size_t least = type == Physical::byte_array ? 4 : width_of(type, type_length);
  if (least == 0 || values > static_cast<int64_t>(bytes.size() / least)) damaged("a dictionary ends too early");
  PlainDecoder decoder(bytes, type, type_length);
  Dictionary dictionary;
  dictionary.reserve(static_cast<size_t>(values));
  for (int64_t i = 0; i < values; ++i) dictionary.push_back(decoder.next());
  return dictionary;
}

std::unique_ptr<ValueDecoder> make_decoder(Encoding encoding, Bytes bytes, int64_t most, Physical type, int64_t type_length,
                                           const Dictionary* dictionary) {
  const auto limit = static_cast<uint64_t>(most);
  const bool whole = type == Physical::int32 || type == Physical::int64;
  const bool text = type == Physical::byte_array || type == Physical::fixed_len_byte_array;
  switch (encoding) {
    case Encoding::plain: return std::make_unique<PlainDecoder>(bytes, type, type_length);
    case Encoding::plain_dictionary:
    case Encoding::rle_dictionary:
      if (dictionary == nullptr) damaged("a page needs a dictionary and the column has none");
      return std::make_unique<DictionaryDecoder>(bytes, *dictionary);
    case Encoding::rle:
      if (type == Physical::boolean) return std::make_unique<RunBooleanDecoder>(bytes);
      break;
    case Encoding::delta_binary_packed:
      if (whole) return std::make_unique<DeltaIntegerDecoder>(bytes, limit, type);
      break;
    case Encoding::delta_length_byte_array:
      if (type == Physical::byte_array) return std::make_unique<DeltaLengthDecoder>(bytes, limit);
      break;
    case Encoding::delta_byte_array:
      if (text) return std::make_unique<DeltaStringDecoder>(bytes, limit);
      break;
    case Encoding::byte_stream_split:
      if (type != Physical::boolean && type != Physical::byte_array)
        return std::make_unique<StreamSplitDecoder>(bytes, type, type_length);
      break;
    case Encoding::bit_packed: break;
  }
  unsupported("encoding " + name_of(encoding) + " for this type");
}

}  // namespace snug::parquet
