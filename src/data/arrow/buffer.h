#pragma once
// One buffer of a record batch, of which a window is in memory: rows are read from front to back, so that a batch of any
// size takes little of it. Compressed ones are unpacked on the way.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/file.h"
#include "data/arrow/flatbuffer.h"
#include "data/byte_stream.h"

namespace snug::arrow {

class Buffer {
 public:
  Buffer() = default;  // without bytes

  // `size` bytes of the file from `offset` on. The file must outlive it.
  static Buffer plain(const InputFile& file, int64_t offset, int64_t size);

  // As Arrow writes compressed buffers: the size that it unpacks to, and a Zstandard frame, or the bytes as they are.
  static Buffer zstandard(const InputFile& file, int64_t offset, int64_t size);

  int64_t size() const { return size_; }

  // The bytes from `begin` on, which hold until the next call. One that is compressed is read onwards only, up to the start
  // of what was asked for last. Throws damaged() for what does not lie in it.
  Bytes at(int64_t begin, int64_t size);

 private:
  void load(int64_t begin, int64_t size);
  void unpack(int64_t begin, size_t size);

  const InputFile* file_ = nullptr;
  int64_t offset_ = 0, size_ = 0;
  std::unique_ptr<ByteStream> unpacked_;  // what comes behind the window, if it is compressed
  std::vector<std::byte> window_;
  int64_t window_begin_ = 0;
};

}  // namespace snug::arrow
