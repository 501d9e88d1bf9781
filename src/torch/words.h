#pragma once
// Words in text that a terminal may have wrapped: a space of a phrase stands for any blanks, and a line break may stand
// anywhere in it. Used instead of regular expressions, in linear time.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace snug {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// At most `most` bytes of valid UTF-8, with a mark where it was cut.
inline std::string shortened(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return std::string(text.substr(0, most)) + "…";
}

// Of a hexadecimal digit; -1 for another character.
inline int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

// The digits at the front.
inline std::string_view digits_of(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(0, end);
}

// The number that `digits` spell; -1 if they are none or too many.
inline int64_t number_at(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size() ? value : -1;
}

// Bytes of `text` that `phrase` covers at its front; 0 if it does not stand there.
inline size_t phrase_length(std::string_view text, std::string_view phrase) {
  size_t at = 0;
  for (const char c : phrase) {
    if (c == ' ') {
      if (at >= text.size() || !is_blank(text[at])) return 0;
      while (at < text.size() && is_blank(text[at])) ++at;
      continue;
    }
    if (at > 0 && at < text.size() && text[at] == '\n') ++at;
    if (at >= text.size() || text[at] != c) return 0;
    ++at;
  }
  return at;
}

// Bytes of `text` that `phrase` covers at its end; 0 if it does not stand there.
inline size_t phrase_length_before(std::string_view text, std::string_view phrase) {
  size_t left = text.size();
  for (size_t i = phrase.size(); i-- > 0;) {
    if (phrase[i] == ' ') {
      if (left == 0 || !is_blank(text[left - 1])) return 0;
      while (left > 0 && is_blank(text[left - 1])) --left;
      continue;
    }
    if (left < text.size() && left > 0 && text[left - 1] == '\n') --left;
    if (left == 0 || text[left - 1] != phrase[i]) return 0;
    --left;
  }
  return text.size() - left;
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace snug
