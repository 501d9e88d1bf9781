#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "base/quote.h"
#include "chat/characters.h"
#include "chat/format.h"
#include "chat/operators.h"
#include "chat/python_text.h"
#include "chat/text_operations.h"

namespace snug::chat {
namespace {

constexpr int64_t kMostDigits = 1000;

std::string printed(const char* format, int64_t precision, double number) {
  if (precision > kMostDigits) throw Error("a precision is larger than 1000");
  char buffer[2048];
  const int length = std::snprintf(buffer, sizeof buffer, format, static_cast<int>(precision), number);
  return {buffer, static_cast<size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1))};
}

std::string grouped(std::string digits, char separator, size_t size) {
  if (separator == '\0') return digits;
  size_t end = digits.find_first_not_of("0123456789abcdefABCDEF");
  if (end == std::string::npos) end = digits.size();
  for (size_t at = end; at > size; at -= size) digits.insert(at - size, 1, separator);
  return digits;
}

std::string real_digits(double number, const NumberStyle& style) {
  const int64_t precision = style.precision < 0 ? 6 : style.precision;
  if (!std::isfinite(number)) {
    const bool capital = style.type == 'E' || style.type == 'F' || style.type == 'G';
    const char* name = std::isnan(number) ? (capital ? "NAN" : "nan") : (capital ? "INF" : "inf");
    return style.type == '%' ? std::string(name) + "%" : name;
  }
  switch (style.type) {
    case 'e': return printed("%.*e", precision, number);
    case 'E': return printed("%.*E", precision, number);
    case 'f':
    case 'F': return printed("%.*f", precision, number);
    case 'g':
    case 'n': return printed(style.alternate ? "%#.*g" : "%.*g", precision, number);
    case 'G': return printed(style.alternate ? "%#.*G" : "%.*G", precision, number);
    case '%': return printed("%.*f", precision, number * 100.0) + "%";
    default: break;
  }
  if (style.precision < 0) return format_real(number);
  std::string digits = printed("%.*g", std::max<int64_t>(precision, 1), number);
  // without a type a number still looks like a float
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

std::string integer_digits(uint64_t magnitude, const NumberStyle& style) {
  switch (style.type) {
    case 'x': return (style.alternate ? "0x" : "") + grouped(fmt::format("{:x}", magnitude), style.grouping, 4);
    case 'X': return (style.alternate ? "0X" : "") + grouped(fmt::format("{:X}", magnitude), style.grouping, 4);
    case 'o': return (style.alternate ? "0o" : "") + grouped(fmt::format("{:o}", magnitude), style.grouping, 4);
    case 'b': return (style.alternate ? "0b" : "") + grouped(fmt::format("{:b}", magnitude), style.grouping, 4);
    default: return grouped(std::to_string(magnitude), style.grouping, 3);
  }
}

}  // namespace

std::string format_number(const Value& value, const NumberStyle& style) {
  const auto whole = value.as_integer();
  const std::string_view types = whole ? std::string_view("\0dxXobcneEfFgG%", 15) : std::string_view("\0eEfFgG%n", 9);
  if (types.find(style.type) == std::string_view::npos) {
    throw Error(fmt::format("'{}' cannot be formatted as '{}'", type_name(value), style.type));
  }
  if (style.type == 'c') {
    if (*whole < 0 || *whole > 0x10FFFF || (*whole >= 0xD800 && *whole < 0xE000)) throw Error("a number is no character");
    std::string character;
    append_utf8(character, static_cast<char32_t>(*whole));
    return character;
  }
  const bool as_integer = whole && std::string_view("\0dxXobn", 7).find(style.type) != std::string_view::npos;
  bool negative = false;
  std::string digits;
  if (as_integer) {
    if (style.precision >= 0) throw Error("a whole number takes no precision");
    negative = *whole < 0;
    digits = integer_digits(negative ? 0 - static_cast<uint64_t>(*whole) : static_cast<uint64_t>(*whole), style);
  } else {
    const double number = *value.as_real();
    negative = std::signbit(number) && !std::isnan(number);
    digits = grouped(real_digits(std::abs(number), style), std::isfinite(number) ? style.grouping : '\0', 3);
  }
  const char sign = negative ? '-' : style.sign;
  return sign == '-' && !negative ? digits : std::string(1, sign) + digits;
}

TextRef lay_out(const TextRef& text, const NumberStyle& style, char align) {
  if (style.width <= text->length()) return text;
  if (align == '<') return pad(text, style.width, style.fill, Align::left);
  if (align == '>') return pad(text, style.width, style.fill, Align::right);
  const int64_t missing = style.width - text->length();
  if (missing > Meter::kMostBytes) throw Error("the template makes more than 64 MiB of text");
  int64_t before = missing / 2;
  int64_t kept = 0;  // sign and prefix stand before what fills up a number
  if (align == '=') {
    before = missing;
    const std::string_view all = text->view();
    if (all.starts_with('-') || all.starts_with('+') || all.starts_with(' ')) kept = 1;
    if (style.alternate && all.substr(static_cast<size_t>(kept)).starts_with('0') &&
        all.size() > static_cast<size_t>(kept) + 1)
      kept += 2;
  }
  TextBuilder builder;
  builder.add(*text, 0, kept);
  for (int64_t i = 0; i < before; ++i) builder.add(style.fill);
  builder.add(*text, kept, text->size());
  for (int64_t i = before; i < missing; ++i) builder.add(style.fill);
  return builder.take();
}

}  // namespace snug::chat
