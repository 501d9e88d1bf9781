#include "recipe/values.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/trimmed.h"

namespace snug {

namespace {

[[noreturn]] void wrong(std::string_view key, std::string_view expected, std::string_view text) {
  constexpr size_t kLongest = 80;
  throw Error(
      fmt::format("{} must be {}, not '{}{}'", key, expected, text.substr(0, kLongest), text.size() > kLongest ? "…" : ""));
}

}  // namespace

bool parse_boolean(std::string_view key, std::string_view text) {
  std::string lower(trimmed(text));
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view yes : {"", "true", "yes", "on", "1"}) {
    if (lower == yes) return true;
  }
  for (const std::string_view no : {"false", "no", "off", "0"}) {
    if (lower == no) return false;
  }
  wrong(key, "true or false", text);
}

int64_t parse_integer(std::string_view key, std::string_view text, int64_t low, int64_t high) {
  std::string_view digits = trimmed(text);
  if (digits.size() > 1 && digits.front() == '+') digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (!whole || value < low || value > high) {
    const bool bounded = high != std::numeric_limits<int64_t>::max();
    wrong(
        key,
        bounded ? fmt::format("a whole number from {} to {}", low, high) : fmt::format("a whole number of at least {}", low),
        text);
  }
  return value;
}

double parse_number(std::string_view key, std::string_view text, double low, double high) {
  std::string_view digits = trimmed(text);
  if (digits.size() > 1 && digits.front() == '+') digits.remove_prefix(1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool number = error == std::errc() && end == digits.data() + digits.size() && std::isfinite(value);
  if (!number || value < low || value > high) {
    const bool bounded = high != std::numeric_limits<double>::max();
    wrong(key, bounded ? fmt::format("a number from {} to {}", low, high) : fmt::format("a number of at least {}", low),
          text);
  }
  return value;
}

const std::string& single_value(std::string_view key, std::span<const std::string> values) {
  if (values.size() != 1) throw Error(fmt::format("{} takes one value, not a list of {}", key, values.size()));
  return values[0];
}

std::vector<std::string> parse_list(std::string_view key, std::span<const std::string> values) {
  std::vector<std::string> items;
  if (values.size() == 1) {
    std::string_view rest = values[0];
    if (trimmed(rest).empty()) return items;
    for (;;) {
      const size_t comma = rest.find(',');
      items.emplace_back(trimmed(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    for (const std::string& value : values) items.emplace_back(trimmed(value));
  }
  for (const std::string& item : items) {
    if (item.empty()) throw Error(fmt::format("{} has an empty item in its list", key));
    if (item.find(',') != std::string::npos) throw Error(fmt::format("{}: item '{}' holds a comma", key, item));
  }
  return items;
}

}  // namespace snug
