#pragma once
// The alphabet of byte-level BPE (GPT-2's bytes_to_unicode): each byte is written as one printable character below U+0144,
// so that a vocabulary of bytes can be kept in JSON.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace snug {

class ByteAlphabet {
 public:
  constexpr ByteAlphabet() {
    code_point_of_.fill(0);
    byte_of_.fill(-1);
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const int code_point = printable ? byte : next++;
      code_point_of_[static_cast<size_t>(byte)] = static_cast<uint16_t>(code_point);
      byte_of_[static_cast<size_t>(code_point)] = static_cast<int16_t>(byte);
    }
  }

  // Appends the UTF-8 of the character that stands for `byte`.
  void append(std::string& out, unsigned char byte) const {
    const unsigned code_point = code_point_of_[byte];
    if (code_point < 0x80) {
      out += static_cast<char>(code_point);
    } else {
      out += static_cast<char>(0xC0U | (code_point >> 6));
      out += static_cast<char>(0x80U | (code_point & 0x3FU));
    }
  }

  // Appends the bytes that `token` (valid UTF-8) stands for; false, and nothing appended, if a character is not in the
  // alphabet.
  bool append_bytes(std::string& out, std::string_view token) const {
    const size_t before = out.size();
    for (size_t i = 0; i < token.size(); ++i) {
      unsigned code_point = static_cast<unsigned char>(token[i]);
      if (code_point >= 0x80) {
        const bool two_bytes = (code_point & 0xE0U) == 0xC0U && i + 1 < token.size();
        code_point = two_bytes ? (code_point & 0x1FU) << 6 | (static_cast<unsigned char>(token[++i]) & 0x3FU) : kCharacters;
      }
      if (code_point >= kCharacters || byte_of_[code_point] < 0) {
        out.resize(before);
        return false;
      }
      out += static_cast<char>(byte_of_[code_point]);
    }
    return true;
  }

 private:
  static constexpr unsigned kCharacters = 324;
  std::array<uint16_t, 256> code_point_of_{};
  std::array<int16_t, kCharacters> byte_of_{};
};

inline constexpr ByteAlphabet kByteAlphabet;

}  // namespace snug
