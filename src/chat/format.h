#pragma once
// Python's three ways to put values into text: "%d" % x, "{:d}".format(x) and the mini-language after the colon.

#include <string>
#include <string_view>

#include "chat/callable.h"

namespace snug::chat {

// format % values: a tuple gives several, a dict gives them by name, anything else is the one value.
TextRef format_percent(const TextRef& format, const Value& values);
// format.format(…)
TextRef format_braces(const TextRef& format, const CallArguments& arguments);

// How a number is laid out in text: what stands after ":" in braces, or between "%" and its letter.
struct NumberStyle {
  std::string fill = " ";
  char align = '\0';  // < > ^ =, none: by type
  char sign = '-';    // + - or a space
  bool alternate = false;
  int64_t width = 0;  // characters
  char grouping = '\0';
  int64_t precision = -1;
  char type = '\0';
};

// Digits of `value` by style.type (d x X o b c e E f F g G % n), without width. Throws Error for other types.
std::string format_number(const Value& value, const NumberStyle& style);
// To the width of `style`; `sign_first`: how many characters of sign stand before the filling of "=".
TextRef lay_out(const TextRef& text, const NumberStyle& style, char align);

}  // namespace snug::chat
