#pragma once
// The lines of a log as people send them: raw bytes come in by pieces, clean UTF-8 lines go out. Colour codes, progress bars
// that return the carriage, Windows line ends, UTF-16, text inside of JSON and of HTML, quotes of mails and issues, and the
// prefixes of launchers and loggers are dealt with here, so that nobody else meets them. Knows nothing of what the lines
// say. Memory is bounded by the longest line that is kept whole.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "torch/json_text.h"
#include "torch/log_prefix.h"
#include "torch/utf16.h"

namespace snug {

// A line that is longer comes in several parts, parted at a space where there is one.
inline constexpr size_t kLongestLine = size_t{64} << 10;

class LogLines {
 public:
  explicit LogLines(std::function<void(const LogLine&)> sink)
      : sink_(std::move(sink)), json_([this](std::string_view line) { emit(line); }) {}
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  void feed(std::string_view bytes);
  void finish();  // the last line, if it has no end

 private:
  void split(std::string_view text);
  void end_line();
  void part_line();
  void take(std::string_view raw);
  std::string_view unquoted(std::string_view line);
  void emit(std::string_view raw);

  std::function<void(const LogLine&)> sink_;
  Utf16Reader utf16_;
  JsonText json_;
  std::string raw_, clean_;
  int64_t number_ = 1;
  bool returned_ = false;  // the byte before was a carriage return
  bool parted_ = false;    // the beginning of the line was taken already
  bool is_json_ = false;   // this line is
  bool quoted_ = false;    // the line before was a quote: "> "
};

// `text` without escape sequences and control characters, and valid UTF-8. Escapes that were written out as text ("[0;31m",
// "\u001b[0m") go too, and HTML's entities become what they stand for.
std::string without_escapes(std::string_view text);

}  // namespace snug
