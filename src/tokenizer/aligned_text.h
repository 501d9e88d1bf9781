#pragma once
// Text that remembers where it came from: for each byte the bytes of the original that it stands for, through every
// normalization (the idea of NormalizedString in Hugging Face's `tokenizers`). For this room alone.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace snug {

struct TextOrigin {
  uint32_t begin, end;  // bytes of the original text
};

// A part of such a text, valid UTF-8 as everything here. It views; what it views must stay.
struct TextPiece {
  std::string_view text;
  const TextOrigin* origins = nullptr;  // one for each byte; none: the text stands in the original as it is
  uint32_t shift = 0;                   // where it begins in the original

  // Bytes [begin, end), which begin and end with characters.
  TextPiece part(size_t begin, size_t end) const {
    TextPiece result;
    result.text = text.substr(begin, end - begin);
    if (origins != nullptr) {
      result.origins = origins + begin;
      result.shift = begin < text.size() ? origins[begin].begin : shift;
    } else {
      result.shift = shift + static_cast<uint32_t>(begin);
    }
    return result;
  }

  // What byte `at` stands for: its whole character.
  TextOrigin origin(size_t at) const {
    if (origins != nullptr) return origins[at];
    while (at > 0 && utf8_continues(text[at])) --at;
    const auto begin = shift + static_cast<uint32_t>(at);
    return {begin, begin + static_cast<uint32_t>(utf8_length(text[at]))};
  }

  // What bytes [begin, end) (not empty) stand for.
  TextOrigin origin(size_t begin, size_t end) const { return {origin(begin).begin, origin(end - 1).end}; }
};

// A text being made from another. Origins are kept if `tracked`.
struct AlignedText {
  std::string text;
  std::vector<TextOrigin> origins;
  bool tracked = false;

  void clear() {
    text.clear();
    origins.clear();
  }

  void append(std::string_view added, TextOrigin origin) {
    text += added;
    if (tracked) origins.resize(text.size(), origin);
  }

  // Bytes [begin, end) of `from` as they are.
  void copy(const TextPiece& from, size_t begin, size_t end) {
    text += from.text.substr(begin, end - begin);
    if (!tracked) return;
    for (size_t i = begin; i < end; ++i) origins.push_back(from.origin(i));
  }

  TextPiece piece(uint32_t shift) const { return {text, tracked ? origins.data() : nullptr, shift}; }
};

}  // namespace snug
