#pragma once
// What Python's str methods do, on texts that remember where their bytes came from.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/text.h"

namespace snug::chat {

enum class Align : unsigned char { left, right, center };

// Without the characters of `characters` (null: whitespace) at its ends.
TextRef strip(const TextRef& text, const TextRef& characters, bool left, bool right);
// `count` < 0: all.
TextRef replace(const TextRef& text, std::string_view old, const TextRef& by, int64_t count);
// At `separator`; at most `most` cuts, from the left or from the right; `most` < 0: all. An empty separator is an error.
std::vector<TextRef> split(const TextRef& text, std::string_view separator, int64_t most, bool from_right);
// At runs of whitespace.
std::vector<TextRef> split_space(const TextRef& text, int64_t most, bool from_right);
std::vector<TextRef> split_lines(const TextRef& text, bool keep_ends);
// To `width` characters.
TextRef pad(const TextRef& text, int64_t width, std::string_view fill, Align align);
// `map` appends what becomes of a character.
TextRef map_characters(const TextRef& text, const std::function<void(std::string&, char32_t)>& map);
// str.lower()
TextRef lower(const TextRef& text);
int64_t count_of(std::string_view text, std::string_view wanted);

}  // namespace snug::chat
