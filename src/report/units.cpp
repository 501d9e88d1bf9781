#include "report/units.h"

#include <fmt/format.h>

#include <cmath>

namespace snug {

std::string count_text(int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.2f} B", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.2f} M", static_cast<double>(count) / 1e6);
  if (count >= 1'000) return fmt::format("{:.1f} k", static_cast<double>(count) / 1e3);
  return fmt::format("{}", count);
}

std::string counted(int64_t count, std::string_view noun) {
  const std::string_view ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, ending);
}

std::string clock_text(double seconds) {
  const int64_t s = std::llround(seconds);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string seconds_text(std::optional<double> seconds) {
  if (!seconds) return "–";
  const double s = *seconds;
  if (s < 0.9995) return fmt::format("{:.0f} ms", s * 1e3);
  if (s < 59.95) return fmt::format("{:.3g} s", s);
  const int64_t whole = std::llround(s);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{:.1f} days", s / 86400);
}

std::string flops_text(double flops) {
  constexpr const char* kUnits[] = {"TFLOP", "PFLOP", "EFLOP", "ZFLOP"};
  flops /= 1e12;
  size_t unit = 0;
  for (; flops >= 999.5 && unit + 1 < std::size(kUnits); ++unit) flops /= 1000;
  return fmt::format("{:.3g} {}", flops, kUnits[unit]);
}

std::string dollars_text(std::optional<double> dollars) {
  if (!dollars) return "–";
  if (*dollars < 100) return fmt::format("${:.2f}", *dollars);
  return fmt::format("${:.0f}", *dollars);
}

std::string wrapped(const std::string& text, int width, int indent) {
  std::string out;
  int column = 0;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const auto length = static_cast<int>(end - begin);
    if (column > 0 && column + 1 + length > width - indent) {
      out += "\n" + std::string(static_cast<size_t>(indent), ' ');
      column = 0;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += text.substr(begin, end - begin);
    column += length;
    begin = end + 1;
  }
  return out;
}

}  // namespace snug
