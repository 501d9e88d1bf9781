#pragma once
// Bytes as text (RFC 4648, section 4).

#include <cstddef>
#include <span>
#include <string>

namespace snug {

// Appends; with '=' at the end where `bytes` are no multiple of three.
inline void append_base64(std::string& text, std::span<const std::byte> bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = bytes.size() - i < 3 ? bytes.size() - i : 3;
    unsigned word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8U | (k < have ? std::to_integer<unsigned>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) text += k <= have ? kLetters[word >> (18 - 6 * k) & 63U] : '=';
  }
}

}  // namespace snug
