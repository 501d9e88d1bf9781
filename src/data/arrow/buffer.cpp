#include "data/arrow/buffer.h"

#include <algorithm>
#include <cstring>

#include "data/arrow/damaged.h"

namespace snug::arrow {
namespace {

constexpr int64_t kWindow = int64_t{64} << 10;

// A part of a file as a stream.
class FilePart final : public ByteStream {
 public:
  FilePart(const InputFile& file, int64_t offset, int64_t size) : file_(file), offset_(offset), left_(size) {}

 private:
  size_t pull(std::span<std::byte> bytes) override {
    const std::span<std::byte> wanted = bytes.first(std::min(bytes.size(), static_cast<size_t>(left_)));
    file_.read_at(wanted, offset_);
    offset_ += static_cast<int64_t>(wanted.size());
    left_ -= static_cast<int64_t>(wanted.size());
    return wanted.size();
  }

  const InputFile& file_;
  int64_t offset_, left_;
};

// Fills `bytes` from `stream`, which must not end before.
void fill(std::span<std::byte> bytes, ByteStream& stream) {
  while (!bytes.empty()) {
    const size_t got = stream.read(bytes);
    if (got == 0) damaged("a compressed buffer is shorter than it declares");
    bytes = bytes.subspan(got);
  }
}

}  // namespace

Buffer Buffer::plain(const InputFile& file, int64_t offset, int64_t size) {
  Buffer buffer;
  buffer.file_ = &file;
  buffer.offset_ = offset;
  buffer.size_ = size;
  return buffer;
}

Buffer Buffer::zstandard(const InputFile& file, int64_t offset, int64_t size) {
  if (size == 0) return {};
  constexpr int64_t kAsTheyAre = -1;
  int64_t unpacked = 0;
  constexpr auto kLength = static_cast<int64_t>(sizeof unpacked);
  if (size < kLength) damaged("a compressed buffer has no length");
  file.read_at(std::as_writable_bytes(std::span(&unpacked, 1)), offset);
  if (unpacked == kAsTheyAre) return plain(file, offset + kLength, size - kLength);
  if (unpacked < 0) damaged("a compressed buffer has a length below 0");
  Buffer buffer = plain(file, offset, unpacked);
  buffer.unpacked_ = zstandard_stream(std::make_unique<FilePart>(file, offset + kLength, size - kLength), {});
  return buffer;
}

Bytes Buffer::at(int64_t begin, int64_t size) {
  if (begin < 0 || size < 0 || size > size_ || begin > size_ - size) damaged("a value lies outside its buffer");
  const auto window_end = window_begin_ + static_cast<int64_t>(window_.size());
  if (begin < window_begin_ || begin + size > window_end) load(begin, size);
  return std::span(window_).subspan(static_cast<size_t>(begin - window_begin_), static_cast<size_t>(size));
}

void Buffer::load(int64_t begin, int64_t size) {
  const auto wanted = static_cast<size_t>(std::min(std::max(size, kWindow), size_ - begin));
  if (unpacked_) return unpack(begin, wanted);
  window_.resize(wanted);
  window_begin_ = begin;
  file_->read_at(window_, offset_ + begin);
}

// Passes over what comes before `begin`, and keeps what of the window comes behind it.
void Buffer::unpack(int64_t begin, size_t size) {
  if (begin < window_begin_) damaged("values of a compressed buffer overlap");
  const auto passed = static_cast<size_t>(std::min<int64_t>(begin - window_begin_, static_cast<int64_t>(window_.size())));
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(passed));
  window_begin_ += static_cast<int64_t>(passed);
  while (window_begin_ < begin) {
    window_.resize(static_cast<size_t>(std::min(kWindow, begin - window_begin_)));
    fill(window_, *unpacked_);
    window_begin_ += static_cast<int64_t>(window_.size());
    window_.clear();
  }
  const size_t kept = window_.size();
  if (kept >= size) return;
  window_.resize(size);
  fill(std::span(window_).subspan(kept), *unpacked_);
}

}  // namespace snug::arrow
