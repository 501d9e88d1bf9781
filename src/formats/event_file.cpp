#include "formats/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace snug {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostScalars = 16;
constexpr size_t kLongestTag = 40;
constexpr size_t kLargestEvent = 64 + kMostScalars * (kLongestTag + 16);

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}

constexpr auto kCrcTable = make_crc_table();

// Checksums of data that holds checksums are weak; so they are stored turned and shifted
// (tensorflow/core/lib/hash/crc32c.h).
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Bytes of a message in the protobuf encoding, in a buffer of fixed size.
class Message {
 public:
  void varint(int field, uint64_t value) {
    key(field, 0);
    raw_varint(value);
  }
  void fixed64(int field, double value) {
    key(field, 1);
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void fixed32(int field, float value) {
    key(field, 5);
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void bytes(int field, std::span<const std::byte> content) {
    key(field, 2);
    raw_varint(content.size());
    raw(content);
  }
  void text(int field, std::string_view content) { bytes(field, std::as_bytes(std::span(content))); }
  std::span<const std::byte> content() const { return std::span(buffer_).first(size_); }

 private:
  void key(int field, int wire) { raw_varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire)); }
  void raw_varint(uint64_t value) {
    while (value >= 0x80) {
      put(static_cast<std::byte>(value | 0x80));
      value >>= 7;
    }
    put(static_cast<std::byte>(value));
  }
  void raw(std::span<const std::byte> content) {
    for (const std::byte byte : content) put(byte);
  }
  void put(std::byte byte) {
    if (size_ == buffer_.size()) throw Error("an event is too long");
    buffer_[size_++] = byte;
  }

  std::array<std::byte, kLargestEvent> buffer_;
  size_t size_ = 0;
};

void put_le(std::byte* out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(value >> (8 * i));
}

fs::path new_name(const fs::path& directory) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  for (int64_t i = 0;; ++i) {
    fs::path path =
        directory / fmt::format("events.out.tfevents.{}.{}.{}.{}", static_cast<int64_t>(now()), host.data(), ::getpid(), i);
    if (!is_there(path)) return path;
  }
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t crc = 0xffffffffU;
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint32_t>(byte)) & 0xffU];
  return ~crc;
}

EventFile::EventFile(const fs::path& directory, int64_t first_step) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw_errno("the directory cannot be created", directory, error.value());
  path_ = new_name(directory);
  fd_ = open_to_append(path_);
  Message version;
  version.fixed64(1, now());
  version.text(3, "brain.Event:2");
  record(version.content());
  Message start, event;
  start.varint(1, 1);  // SessionLog.START
  event.fixed64(1, now());
  event.varint(2, static_cast<uint64_t>(first_step));
  event.bytes(7, start.content());
  record(event.content());
}

void EventFile::write(int64_t step, std::span<const EventScalar> scalars) {
  if (scalars.size() > kMostScalars) throw Error("too many scalars in one event");
  Message summary, event;
  for (const EventScalar& scalar : scalars) {
    Message value;
    value.text(1, scalar.tag.substr(0, kLongestTag));
    value.fixed32(2, static_cast<float>(scalar.value));
    summary.bytes(1, value.content());
  }
  event.fixed64(1, now());
  event.varint(2, static_cast<uint64_t>(step));
  event.bytes(5, summary.content());
  record(event.content());
}

void EventFile::record(std::span<const std::byte> event) {
  std::array<std::byte, kLargestEvent + 16> frame;
  put_le(frame.data(), event.size(), 8);
  put_le(frame.data() + 8, masked(crc32c(std::span(frame).first(8))), 4);
  std::memcpy(frame.data() + 12, event.data(), event.size());
  put_le(frame.data() + 12 + event.size(), masked(crc32c(event)), 4);
  write_all(fd_.get(), std::span(frame).first(event.size() + 16), path_);
}

}  // namespace snug
