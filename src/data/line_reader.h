#pragma once
// Pieces of a JSON file that hold one row each, in bounded memory: the lines of JSON Lines, or the elements of one array.
// Looks no further into them than needed to find their ends.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_stream.h"

namespace snug {

inline constexpr size_t kMostRowBytes = size_t{64} << 20;

class PieceReader {
 public:
  // `file` names the source in errors.
  PieceReader(std::unique_ptr<ByteStream> stream, std::string file);
  PieceReader(const PieceReader&) = delete;
  PieceReader& operator=(const PieceReader&) = delete;
  virtual ~PieceReader() = default;

  // The next piece; none at the end. The view holds until the next call.
  virtual std::optional<std::string_view> next() = 0;

  // Of the piece that `next` gave last: the line on which it starts, from 1, and the byte, from 0.
  int64_t line_number() const { return line_number_; }
  int64_t byte_offset() const { return byte_offset_; }

  // True if that piece is longer than 64 MiB: it was passed over and the view is empty.
  bool too_long() const { return too_long_; }

 protected:
  std::string_view unread() const { return {buffer_.data() + begin_, end_ - begin_}; }
  bool at_end() const { return at_end_; }

  // Reads more behind the unread bytes, which may move.
  void fill();
  void drop(size_t bytes);

  std::string file_;
  int64_t line_number_ = 0, byte_offset_ = 0;
  bool too_long_ = false;
  int64_t dropped_ = 0;  // bytes before the unread ones

 private:
  std::unique_ptr<ByteStream> stream_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  bool at_end_ = false;
};

// Lines, without their ends. A byte-order mark is passed over.
class LineReader final : public PieceReader {
 public:
  LineReader(std::unique_ptr<ByteStream> stream, std::string file);
  std::optional<std::string_view> next() override;

 private:
  std::optional<std::string_view> pass_over_line();
};

// Elements of the array that is the whole file. Throws Error where the array itself is broken; what stands between its
// commas may be anything whose brackets and quotation marks match.
class ArrayReader final : public PieceReader {
 public:
  ArrayReader(std::unique_ptr<ByteStream> stream, std::string file);
  std::optional<std::string_view> next() override;

 private:
  // The first byte that is no blank, without taking it; none at the end of the file.
  std::optional<char> ahead();
  size_t element_end();
  [[noreturn]] void refuse(const std::string& what) const;

  int64_t line_ = 1;  // of the first unread byte
  bool begun_ = false, finished_ = false;
};

}  // namespace snug
