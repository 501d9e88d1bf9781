#pragma once
// Bytes of a file from front to back, unpacked where the file is gzip or Zstandard, with a look at what comes next. Pipes
// will do. Memory: one buffer, and the decompressor's window.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

class ByteStream {
 public:
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  virtual ~ByteStream() = default;

  // Fills the front of `bytes` with what comes next; 0 only at the end. Throws Error.
  size_t read(std::span<std::byte> bytes);

  // What comes next, at most `bytes` of it, fewer only at the end; it stays to be read.
  std::string_view peek(size_t bytes);

 private:
  virtual size_t pull(std::span<std::byte> bytes) = 0;

  std::vector<std::byte> ahead_;
  size_t ahead_begin_ = 0;
};

// Throws Error if the file cannot be opened.
std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& file);

// What `packed` unpacks to: one Zstandard frame or several. `where` is its name in errors.
std::unique_ptr<ByteStream> zstandard_stream(std::unique_ptr<ByteStream> packed, const std::string& where);

// As it stands in memory, which must outlive the stream.
std::unique_ptr<ByteStream> stream_of(std::string_view text);

}  // namespace snug
