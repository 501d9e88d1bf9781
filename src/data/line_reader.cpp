#include "data/line_reader.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"

namespace snug {
namespace {

constexpr size_t kLineChunk = size_t{64} << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

PieceReader::PieceReader(std::unique_ptr<ByteStream> stream, std::string file)
    : file_(std::move(file)), stream_(std::move(stream)) {
  if (stream_->peek(kByteOrderMark.size()) == kByteOrderMark) {
    fill();
    drop(kByteOrderMark.size());
  }
}

void PieceReader::drop(size_t bytes) {
  begin_ += bytes;
  dropped_ += static_cast<int64_t>(bytes);
}

// The unread bytes move to the front; the buffer grows only with the longest piece.
void PieceReader::fill() {
  if (end_ > begin_) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() - end_ < kLineChunk) buffer_.resize(std::max(buffer_.size() * 2, end_ + kLineChunk));
  const size_t wanted = end_ + kLineChunk;
  while (!at_end_ && end_ < wanted) {
    const size_t got = stream_->read(std::as_writable_bytes(std::span(buffer_)).subspan(end_, wanted - end_));
    at_end_ = got == 0;
    end_ += got;
  }
}

LineReader::LineReader(std::unique_ptr<ByteStream> stream, std::string file)
    : PieceReader(std::move(stream), std::move(file)) {}

std::optional<std::string_view> LineReader::next() {
  too_long_ = false;
  for (size_t scanned = 0;;) {
    const std::string_view text = unread();
    const size_t newline = text.find('\n', scanned);
    if (newline != std::string_view::npos || (at_end() && !text.empty())) {
      const std::string_view line = text.substr(0, newline);
      ++line_number_;
      byte_offset_ = dropped_;
      drop(std::min(line.size() + 1, text.size()));
      return line;
    }
    if (at_end()) return std::nullopt;
    if (text.size() > kMostRowBytes) return pass_over_line();
    scanned = text.size();
    fill();
  }
}

std::optional<std::string_view> LineReader::pass_over_line() {
  too_long_ = true;
  ++line_number_;
  byte_offset_ = dropped_;
  for (;;) {
    const size_t newline = unread().find('\n');
    if (newline != std::string_view::npos) {
      drop(newline + 1);
      return std::string_view();
    }
    drop(unread().size());
    if (at_end()) return std::string_view();
    fill();
  }
}

ArrayReader::ArrayReader(std::unique_ptr<ByteStream> stream, std::string file)
    : PieceReader(std::move(stream), std::move(file)) {}

void ArrayReader::refuse(const std::string& what) const {
  throw Error(what, file_ + ":" + std::to_string(line_) + " (byte " + std::to_string(dropped_) + ")",
              "write one JSON array of objects, or one object on each line");
}

std::optional<char> ArrayReader::ahead() {
  for (;;) {
    const std::string_view text = unread();
    const auto found = std::ranges::find_if_not(text, is_blank);
    const auto blanks = static_cast<size_t>(found - text.begin());
    line_ += std::count(text.begin(), found, '\n');
    drop(blanks);
    if (found != text.end()) return *found;
    if (at_end()) return std::nullopt;
    fill();
  }
}

// The size of the element at the front: up to the comma or bracket that is not its own.
size_t ArrayReader::element_end() {
  int64_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  for (size_t at = 0;; ++at) {
    if (at == unread().size()) {
      if (at_end()) refuse("the file ends inside this row");
      if (at > kMostRowBytes) refuse("the row is longer than 64 MiB");
      fill();
      if (at == unread().size()) refuse("the file ends inside this row");
    }
    const char c = unread()[at];
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == ']')) {
      return at;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

std::optional<std::string_view> ArrayReader::next() {
  if (finished_) return std::nullopt;
  auto c = ahead();
  if (!begun_) {
    if (c != '[') refuse("the file does not begin with '['");
    drop(1);
    begun_ = true;
    c = ahead();
    finished_ = c == ']';
  } else if (c == ',') {
    drop(1);
    c = ahead();
  } else {
    finished_ = c == ']';
  }
  if (!c) refuse("the file ends before its ']'");
  if (finished_) {
    drop(1);
    if (ahead()) refuse("something follows the array");
    return std::nullopt;
  }
  const size_t size = element_end();
  const std::string_view element = unread().substr(0, size);
  line_number_ = line_;
  byte_offset_ = dropped_;
  line_ += std::count(element.begin(), element.end(), '\n');
  drop(size);
  return element;
}

}  // namespace snug
