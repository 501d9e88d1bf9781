#include "recipe/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace snug {

namespace {

__extension__ using Wide = __int128;  // so that 18 digits times a unit cannot overflow

constexpr auto kUnits = std::to_array<std::pair<std::string_view, int64_t>>({
    {"b", 1},
    {"kb", 1'000},
    {"mb", 1'000'000},
    {"gb", 1'000'000'000},
    {"tb", 1'000'000'000'000},
    {"kib", int64_t{1} << 10},
    {"mib", int64_t{1} << 20},
    {"gib", int64_t{1} << 30},
    {"tib", int64_t{1} << 40},
});

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

int64_t parse_bytes(std::string_view text, const std::string& where) {
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("'{}' is not a size: {}", text, why), where,
                "write 24GB (decimal), 24GiB (binary) or 123456789B");
  };
  constexpr int kMostDigits = 18;
  size_t at = 0;
  Wide digits = 0;  // the number without its point
  int64_t divisor = 1;
  int count = 0;
  bool point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    if (++count > kMostDigits) refuse("it has too many digits");
    digits = digits * 10 + (text[at] - '0');
    if (point) divisor *= 10;
  }
  if (count == 0) refuse("it does not start with a number");
  if (at < text.size() && text[at] == ' ') ++at;
  std::string unit;
  for (; at < text.size(); ++at) unit += static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
  if (unit.empty()) refuse("the unit is missing");
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const Wide bytes = digits * factor / divisor;
    if (bytes > std::numeric_limits<int64_t>::max()) refuse("it does not fit in 63 bits");
    return static_cast<int64_t>(bytes);
  }
  refuse(unit == "k" || unit == "m" || unit == "g" || unit == "t" ? "the unit could be decimal or binary"
                                                                  : "its unit is unknown");
  return 0;
}

std::string format_bytes(int64_t bytes) {
  constexpr auto kNames = std::to_array<std::string_view>({"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024.0;
  size_t unit = 0;
  // 1023.95 would print as 1024.0.
  while ((value >= 1023.95 || value <= -1023.95) && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  const int decimals = std::abs(value) < 9.995 ? 2 : 1;  // three digits at least
  return fmt::format("{:.{}f} {}", value, decimals, kNames[unit]);
}

}  // namespace snug
