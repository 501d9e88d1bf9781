#pragma once
// Sizes as PyTorch prints them, so that a reader finds a figure of the answer again in the message.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace snug {

// "643.57 MiB", "1 byte", "0 bytes"; two decimals of the largest unit that is not above it.
inline std::string size_text(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size() - 1; ++unit) value /= 1024;
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

}  // namespace snug
