#include "base/utf8.h"

#include <simdjson.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"

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

struct Free {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-*): malloc is its own
};

}  // namespace

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::string utf8_lossy(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Sequence sequence = next_sequence(text);
    result += sequence.valid ? text.substr(0, sequence.bytes) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(sequence.bytes);
  }
  return result;
}

bool is_plainly_nfc(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xCC; });
}

std::string nfc(std::string_view text) {
  utf8proc_uint8_t* mapped = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                               static_cast<utf8proc_ssize_t>(text.size()), &mapped, options);
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(mapped);
  if (length < 0) throw Error(std::string("NFC normalization failed: ") + utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(length)};
}

}  // namespace snug
