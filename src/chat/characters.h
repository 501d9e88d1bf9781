#pragma once
// Unicode characters as Python's str methods see them: classes and case. It knows nothing of values.

#include <string>
#include <string_view>

namespace snug::chat {

// The character whose valid UTF-8 is at the front of `bytes`.
char32_t decode(std::string_view bytes);
void append_utf8(std::string& out, char32_t character);

bool is_space(char32_t character);
bool is_printable(char32_t character);  // repr() shows it as it is
bool is_alpha(char32_t character);
bool is_decimal(char32_t character);
bool is_digit(char32_t character);
inline bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_numeric(char32_t character);
bool is_upper(char32_t character);  // also false for what has no case
bool is_lower(char32_t character);
bool is_title(char32_t character);
inline bool is_alnum(char32_t character) { return is_alpha(character) || is_numeric(character); }

enum class Case : unsigned char { upper, lower, title };

// Appends `character` in that case; one character may become several ("ß" → "SS").
void append_cased(std::string& out, char32_t character, Case wanted);

}  // namespace snug::chat
