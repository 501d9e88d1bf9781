#pragma once
// The lines of a log as people send them: raw bytes come in by pieces, clean UTF-8 lines go out. Colour codes, progress bars
// that return the carriage, Windows line ends, the zero bytes of UTF-16, JSON-escaped notebook cells and the prefixes of
// launchers and loggers ("[rank1]:", timestamps, pytest's "E ") are dealt with here, so that nobody else meets them. Knows
// nothing of what the lines say. Memory is bounded by the longest line that is kept whole.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace snug {

struct LogLine {
  std::string_view text;    // without its prefix; holds until the next line
  int64_t number = 0;       // in the file, from 1
  std::optional<int> rank;  // of the process, where a prefix tells it
};

// A line that is longer comes in several parts, parted at a space where there is one.
inline constexpr size_t kLongestLine = size_t{64} << 10;

class LogLines {
 public:
  explicit LogLines(std::function<void(const LogLine&)> sink) : sink_(std::move(sink)) {}

  void feed(std::string_view bytes);
  void finish();  // the last line, if it has no end

 private:
  void end_line();
  void part_line();
  void emit(std::string_view raw);

  std::function<void(const LogLine&)> sink_;
  std::string raw_, clean_;
  int64_t number_ = 1;
  bool returned_ = false;  // the byte before was a carriage return
};

// `text` without escape sequences and control characters, and valid UTF-8. Escapes that were written out as text ("[0;31m",
// "\u001b[0m") go too.
std::string without_escapes(std::string_view text);

// Takes prefixes of launchers, loggers and frames of boxes off the front.
LogLine without_prefix(std::string_view text);

}  // namespace snug
