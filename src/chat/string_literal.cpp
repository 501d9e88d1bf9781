#include "chat/string_literal.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/characters.h"

namespace snug::chat {
namespace {

int hex_digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

class Unescaper {
 public:
  Unescaper(std::string_view literal, const std::string& where) : rest_(literal), where_(where) {}

  std::string run() {
    while (!rest_.empty()) {
      const size_t backslash = rest_.find('\\');
      out_ += rest_.substr(0, backslash);
      if (backslash == std::string_view::npos) break;
      rest_.remove_prefix(backslash + 1);
      if (rest_.empty()) throw Error("a string ends in a backslash", where_);
      escape();
    }
    return std::move(out_);
  }

 private:
  void escape() {
    const char letter = rest_[0];
    constexpr std::string_view kLetters = "\\'\"abfnrtv";
    constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
      out_ += kMeanings[at];
      rest_.remove_prefix(1);
    } else if (letter == '\n') {
      rest_.remove_prefix(1);
    } else if (hex_digit_of(letter) < 8) {
      number(8, 1, 3);
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      rest_.remove_prefix(1);
      const size_t width = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      number(16, width, width);
    } else if (letter == 'N') {
      throw Error("characters by name (\\N{…}) are not supported", where_, "write the character itself");
    } else {
      out_ += '\\';
      if (static_cast<unsigned char>(letter) >= 0x80) keep_escaped();
    }
  }

  // Jinja escapes what is not ASCII before it resolves escapes: the backslash eats that escape's own.
  void keep_escaped() {
    const auto code = static_cast<uint32_t>(decode(rest_));
    out_ += code < 0x100     ? fmt::format("x{:02x}", code)
            : code < 0x10000 ? fmt::format("u{:04x}", code)
                             : fmt::format("U{:08x}", code);
    rest_.remove_prefix(utf8_length(rest_[0]));
  }

  void number(int base, size_t least, size_t most) {
    uint64_t code = 0;
    size_t count = 0;
    while (count < most && count < rest_.size() && hex_digit_of(rest_[count]) < base) {
      code = code * static_cast<uint64_t>(base) + static_cast<uint64_t>(hex_digit_of(rest_[count++]));
    }
    if (count < least) throw Error("an escape in a string is cut short", where_);
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      throw Error("an escape in a string names no character", where_);
    append_utf8(out_, static_cast<char32_t>(code));
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  const std::string& where_;
  std::string out_;
};

}  // namespace

std::string unescape(std::string_view literal, const std::string& where) { return Unescaper(literal, where).run(); }

}  // namespace snug::chat
