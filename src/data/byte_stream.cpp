#include "data/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace snug {
namespace {

constexpr size_t kChunk = size_t{128} << 10;

class FileStream final : public ByteStream {
 public:
  explicit FileStream(const std::filesystem::path& file) : file_(file, "give a file that can be read") {}

 private:
  size_t pull(std::span<std::byte> bytes) override { return file_.read_some(bytes); }

  InputFile file_;
};

class TextStream final : public ByteStream {
 public:
  explicit TextStream(std::string_view text) : text_(text) {}

 private:
  size_t pull(std::span<std::byte> bytes) override {
    const size_t size = std::min(bytes.size(), text_.size());
    if (size > 0) std::memcpy(bytes.data(), text_.data(), size);
    text_.remove_prefix(size);
    return size;
  }

  std::string_view text_;
};

[[noreturn]] void refuse_packed(const std::string& where) {
  throw Error("the compressed file is damaged or cut off", where, "pack it anew or fetch it again");
}

// What packed streams share: a buffer of packed bytes.
class PackedStream : public ByteStream {
 public:
  PackedStream(std::unique_ptr<ByteStream> packed, std::string where)
      : where_(std::move(where)), packed_(std::move(packed)), buffer_(kChunk) {}

 protected:
  // The packed bytes that have not been used; read anew when there are none.
  std::span<std::byte> input() {
    if (input_.empty()) input_ = std::span(buffer_).first(packed_->read(buffer_));
    return input_;
  }
  void used(size_t bytes) { input_ = input_.subspan(bytes); }

  std::string where_;

 private:
  std::unique_ptr<ByteStream> packed_;
  std::vector<std::byte> buffer_;
  std::span<std::byte> input_;
};

class GzipStream final : public PackedStream {
 public:
  GzipStream(std::unique_ptr<ByteStream> packed, std::string where) : PackedStream(std::move(packed), std::move(where)) {
    constexpr int kGzip = 15 + 16;
    if (inflateInit2(&stream_, kGzip) != Z_OK) throw Error("zlib has no memory", where_);
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() override { inflateEnd(&stream_); }

 private:
  size_t pull(std::span<std::byte> bytes) override {
    const size_t wanted = std::min(bytes.size(), kChunk);
    stream_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream_.avail_out = static_cast<uInt>(wanted);
    while (stream_.avail_out == wanted) {
      const std::span<std::byte> in = input();
      if (in.empty() && between_members_) return 0;
      if (in.empty()) refuse_packed(where_);
      if (between_members_ && inflateReset(&stream_) != Z_OK) refuse_packed(where_);
      stream_.next_in = reinterpret_cast<Bytef*>(in.data());
      stream_.avail_in = static_cast<uInt>(in.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      used(in.size() - stream_.avail_in);
      if (status != Z_OK && status != Z_STREAM_END) refuse_packed(where_);
      between_members_ = status == Z_STREAM_END;
    }
    return wanted - stream_.avail_out;
  }

  z_stream stream_{};
  bool between_members_ = false;
};

class ZstdStream final : public PackedStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> packed, std::string where)
      : PackedStream(std::move(packed), std::move(where)), stream_(ZSTD_createDStream(), &ZSTD_freeDStream) {
    if (!stream_) throw Error("Zstandard has no memory", where_);
  }

 private:
  size_t pull(std::span<std::byte> bytes) override {
    ZSTD_outBuffer output{bytes.data(), std::min(bytes.size(), kChunk), 0};
    while (output.pos == 0) {
      const std::span<std::byte> in = input();
      if (in.empty() && between_frames_) return 0;
      ZSTD_inBuffer packed{in.data(), in.size(), 0};
      const size_t status = ZSTD_decompressStream(stream_.get(), &output, &packed);
      if (ZSTD_isError(status) != 0 || (in.empty() && output.pos == 0)) refuse_packed(where_);
      used(packed.pos);
      between_frames_ = status == 0;
    }
    return output.pos;
  }

  std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream_;
  bool between_frames_ = false;
};

}  // namespace

size_t ByteStream::read(std::span<std::byte> bytes) {
  const size_t ready = ahead_.size() - ahead_begin_;
  if (ready == 0) return pull(bytes);
  const size_t size = std::min(ready, bytes.size());
  std::memcpy(bytes.data(), ahead_.data() + ahead_begin_, size);
  ahead_begin_ += size;
  return size;
}

std::string_view ByteStream::peek(size_t bytes) {
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_begin_));
  ahead_begin_ = 0;
  size_t size = ahead_.size();
  if (size < bytes) ahead_.resize(bytes);
  while (size < bytes) {
    const size_t got = pull(std::span(ahead_).subspan(size));
    if (got == 0) break;
    size += got;
  }
  ahead_.resize(size);
  return {reinterpret_cast<const char*>(ahead_.data()), std::min(size, bytes)};
}

std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& file) {
  std::unique_ptr<ByteStream> stream = std::make_unique<FileStream>(file);
  const std::string_view magic = stream->peek(4);
  if (magic.starts_with("\x1F\x8B")) return std::make_unique<GzipStream>(std::move(stream), file.string());
  if (magic == "\x28\xB5\x2F\xFD") return zstandard_stream(std::move(stream), file.string());
  return stream;
}

std::unique_ptr<ByteStream> zstandard_stream(std::unique_ptr<ByteStream> packed, const std::string& where) {
  return std::make_unique<ZstdStream>(std::move(packed), where);
}

std::unique_ptr<ByteStream> stream_of(std::string_view text) { return std::make_unique<TextStream>(text); }

}  // namespace snug
