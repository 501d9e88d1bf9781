#include "recipe/utf8.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/error.h"

namespace snug {

namespace {

// Bytes of the well-formed UTF-8 sequence that `text` starts with (Unicode 15, table 3-7); 0 if there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) -> uint32_t { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const uint32_t first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return follows(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    const bool overlong = first == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = first == 0xEDU && byte(1) > 0x9FU;
    return !overlong && !surrogate && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    const bool overlong = first == 0xF0U && byte(1) < 0x90U;
    const bool beyond = first == 0xF4U && byte(1) > 0x8FU;
    return !overlong && !beyond && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void check_plain_text(std::string_view text, const std::string& where) {
  int64_t line = 1;
  while (!text.empty()) {
    const char c = text.front();
    const size_t length = sequence_length(text);
    if (length == 0) throw Error("the text is not UTF-8", fmt::format("{}:{}", where, line), "save the file as UTF-8");
    const bool control =
        length == 1 && ((static_cast<unsigned char>(c) < 0x20U && c != '\t' && c != '\n' && c != '\r') || c == 0x7F);
    if (control)
      throw Error("the text holds a control character", fmt::format("{}:{}", where, line), "is this a text file?");
    if (c == '\n') ++line;
    text.remove_prefix(length);
  }
}

}  // namespace snug
