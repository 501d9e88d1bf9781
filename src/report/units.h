#pragma once
// Counts, times and prices as people read them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snug {

std::string count_text(int64_t count);                      // "1.24 B"
std::string counted(int64_t count, std::string_view noun);  // "1 thread", "2 batches"
std::string clock_text(double seconds);                     // "1:02:03", "2:03"
std::string seconds_text(std::optional<double> seconds);  // "3.21 s", "4 min 10 s", "2 h 05 min", "3.2 days"; "–" if unknown
std::string flops_text(double flops);                     // "11.1 TFLOP", "4.94 PFLOP"
std::string dollars_text(std::optional<double> dollars);  // "$0.48"; "–" if unknown

// Breaks at spaces where a line of so many columns ends; continuation lines are indented, the first is taken to be.
std::string wrapped(const std::string& text, int width, int indent);

}  // namespace snug
