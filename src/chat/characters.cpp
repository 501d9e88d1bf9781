#include "chat/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/special_casing.h"

namespace snug::chat {
namespace {

utf8proc_category_t category(char32_t character) { return utf8proc_category(static_cast<utf8proc_int32_t>(character)); }

bool has_cased_form(char32_t character, Case wanted) {
  std::string cased;
  std::string plain;
  append_cased(cased, character, wanted);
  append_utf8(plain, character);
  return cased != plain;
}

}  // namespace

char32_t decode(std::string_view bytes) {
  utf8proc_int32_t character = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()), static_cast<utf8proc_ssize_t>(bytes.size()),
                   &character);
  return static_cast<char32_t>(character);
}

void append_utf8(std::string& out, char32_t character) {
  utf8proc_uint8_t buffer[4];
  const auto bytes = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(bytes));
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t character) {
  if (character == ' ') return true;
  switch (category(character)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
  }
}

bool is_alpha(char32_t character) {
  const auto found = category(character);
  return found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t character) { return category(character) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {  // superscripts and the like besides decimals
  return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
         (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247C) ||
         (c >= 0x2488 && c <= 0x2490) || c == 0x24EA || (c >= 0x24F5 && c <= 0x24FD) || c == 0x24FF ||
         (c >= 0x2776 && c <= 0x277E) || (c >= 0x2780 && c <= 0x2788) || (c >= 0x278A && c <= 0x2792);
}

bool is_numeric(char32_t character) {
  const auto found = category(character);
  return found == UTF8PROC_CATEGORY_ND || found == UTF8PROC_CATEGORY_NL || found == UTF8PROC_CATEGORY_NO;
}

bool is_title(char32_t character) { return category(character) == UTF8PROC_CATEGORY_LT; }

bool is_upper(char32_t character) {
  return category(character) == UTF8PROC_CATEGORY_LU || (is_numeric(character) && has_cased_form(character, Case::lower)) ||
         (character >= 0x24B6 && character <= 0x24CF);
}

bool is_lower(char32_t character) {
  return category(character) == UTF8PROC_CATEGORY_LL || character == 0xAA || character == 0xBA ||
         (character >= 0x24D0 && character <= 0x24E9) || (is_numeric(character) && has_cased_form(character, Case::upper));
}

void append_cased(std::string& out, char32_t character, Case wanted) {
  if (character < 0x80) {
    const bool lower = character >= 'a' && character <= 'z';
    const bool upper = character >= 'A' && character <= 'Z';
    out += static_cast<char>(wanted == Case::lower ? (upper ? character + 32 : character)
                                                   : (lower ? character - 32 : character));
    return;
  }
  const auto code = static_cast<utf8proc_int32_t>(character);
  if (wanted == Case::lower) {
    if (character == 0x130) {
      out += "i\u0307";
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(code)));
    }
    return;
  }
  const auto* special = std::ranges::lower_bound(kSpecialCases, character, {}, &SpecialCase::character);
  if (special != kSpecialCases.end() && special->character == character) {
    out += wanted == Case::upper ? special->upper : special->title;
    return;
  }
  append_utf8(out, static_cast<char32_t>(wanted == Case::upper ? utf8proc_toupper(code) : utf8proc_totitle(code)));
}

}  // namespace snug::chat
