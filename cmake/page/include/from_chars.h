#pragma once
// std::from_chars of a double, which libc++ 19 lacks: the form is checked here, as the standard has it (no sign but minus,
// no blanks, no 0x), and musl's strtod, which rounds right, has the value.
#include <charconv>
#include <cstdlib>
#include <string>

namespace std {

inline from_chars_result from_chars(const char* first, const char* last, double& value,
                                    chars_format = chars_format::general) {
  const char* at = first;
  const auto digits = [&] {
    const char* const from = at;
    while (at < last && *at >= '0' && *at <= '9') ++at;
    return at - from;
  };
  if (at < last && *at == '-') ++at;
  auto found = digits();
  if (at < last && *at == '.') {
    ++at;
    found += digits();
  }
  if (found == 0) return {first, errc::invalid_argument};
  if (const char* const before = at; at < last && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at < last && (*at == '-' || *at == '+')) ++at;
    if (digits() == 0) at = before;
  }
  const double read = strtod(string(first, at).c_str(), nullptr);
  if (read - read != 0) return {at, errc::result_out_of_range};
  value = read;
  return {at, errc()};
}

}  // namespace std
