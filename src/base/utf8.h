#pragma once
// UTF-8 text: validity, repair, and characters one at a time. It knows nothing of tokens.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

bool is_utf8(std::string_view text);

// `text` with every maximal invalid part replaced by U+FFFD, as Rust's from_utf8_lossy and Python's errors="replace" do.
std::string utf8_lossy(std::string_view text);

// As above; `starts` gets, for each byte of the result and for its end, the byte of `text` where its character (or the
// invalid part in its place) starts.
std::string utf8_lossy(std::string_view text, std::vector<uint32_t>& starts);

// Bytes of the character that starts with `lead`, in valid UTF-8.
inline size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// True for a byte that continues a character.
inline bool utf8_continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

struct CodePoint {
  uint32_t value;
  uint32_t bytes;
};

// The character at byte `at` (below the size) of valid UTF-8.
inline CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1FU) << 6 | (byte(1) & 0x3FU), 2};
  if (lead < 0xF0) return {(lead & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU), 3};
  return {(lead & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU), 4};
}

// The last character of valid UTF-8 that is not empty.
inline std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && utf8_continues(text[begin])) --begin;
  return text.substr(begin);
}

// Appends a code point (no surrogate, at most U+10FFFF).
inline void append_utf8(std::string& out, uint32_t code_point) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0U | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      put(0xE0U | code_point >> 12);
    } else {
      put(0xF0U | code_point >> 18);
      put(0x80U | (code_point >> 12 & 0x3FU));
    }
    put(0x80U | (code_point >> 6 & 0x3FU));
  }
  put(0x80U | (code_point & 0x3FU));
}

}  // namespace snug
