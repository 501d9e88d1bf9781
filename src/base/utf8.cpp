#include "base/utf8.h"

#include <simdjson.h>

namespace snug {
namespace {

struct Sequence {
  size_t bytes;  // of the character, or of the invalid part
  bool valid;
};

// The character at the front of `text`; the ranges are those of table 3-7 of the Unicode standard.
Sequence next_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

}  // namespace

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::string utf8_lossy(std::string_view text) {
  std::vector<uint32_t> ignored;
  return utf8_lossy(text, ignored);
}

std::string utf8_lossy(std::string_view text, std::vector<uint32_t>& starts) {
  std::string result;
  result.reserve(text.size());
  starts.clear();
  for (size_t at = 0; at < text.size();) {
    const Sequence sequence = next_sequence(text.substr(at));
    result += sequence.valid ? text.substr(at, sequence.bytes) : std::string_view("\xEF\xBF\xBD");
    starts.resize(result.size(), static_cast<uint32_t>(at));
    at += sequence.bytes;
  }
  starts.push_back(static_cast<uint32_t>(text.size()));
  return result;
}

}  // namespace snug
