#pragma once
// Reads TensorBoard's event files, written apart from the code under test: bit by bit where that is simplest.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct ReadEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  bool starts_session = false;
  std::map<std::string, float> scalars;
};

namespace events_detail {

inline uint32_t slow_crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

inline void expect_crc(std::string_view bytes, std::string_view stored) {
  const uint32_t crc = slow_crc32c(bytes), masked = (crc >> 15 | crc << 17) + 0xa282ead8U;
  uint32_t found;
  std::memcpy(&found, stored.data(), 4);
  if (found != masked) throw std::runtime_error("wrong checksum");
}

struct Field {
  int number, wire;
  uint64_t value;          // varint
  std::string_view bytes;  // fixed and length-delimited
};

inline std::vector<Field> fields_of(std::string_view message) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  std::vector<Field> fields;
  while (at < message.size()) {
    const uint64_t key = varint();
    Field field{static_cast<int>(key >> 3), static_cast<int>(key & 7), 0, {}};
    if (field.wire == 0) {
      field.value = varint();
    } else {
      const size_t length = field.wire == 1 ? 8 : field.wire == 5 ? 4 : varint();
      if (length > message.size() - at) throw std::runtime_error("a field ends beyond its message");
      field.bytes = message.substr(at, length);
      at += length;
    }
    fields.push_back(field);
  }
  return fields;
}

template <class Value>
Value as(std::string_view bytes) {
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

inline ReadEvent event_of(std::string_view message) {
  ReadEvent event;
  for (const Field& field : fields_of(message)) {
    if (field.number == 1) event.wall_time = as<double>(field.bytes);
    if (field.number == 2) event.step = static_cast<int64_t>(field.value);
    if (field.number == 3) event.file_version = field.bytes;
    if (field.number == 7) event.starts_session = fields_of(field.bytes).at(0).value == 1;
    if (field.number != 5) continue;
    for (const Field& value : fields_of(field.bytes)) {
      const std::vector<Field> parts = fields_of(value.bytes);
      event.scalars[std::string(parts.at(0).bytes)] = as<float>(parts.at(1).bytes);
    }
  }
  return event;
}

}  // namespace events_detail

// Throws for a wrong checksum or half a record.
inline std::vector<ReadEvent> read_events(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  std::vector<ReadEvent> events;
  for (std::string_view rest = file; !rest.empty();) {
    const auto length = events_detail::as<uint64_t>(rest.substr(0, 8));
    if (rest.size() < 16 || length > rest.size() - 16) throw std::runtime_error("half a record");
    events_detail::expect_crc(rest.substr(0, 8), rest.substr(8, 4));
    events_detail::expect_crc(rest.substr(12, length), rest.substr(12 + length, 4));
    events.push_back(events_detail::event_of(rest.substr(12, length)));
    rest.remove_prefix(16 + length);
  }
  return events;
}

}  // namespace snug
