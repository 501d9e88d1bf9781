#pragma once
// Looks at a memory, one after the other, as people and scripts read them.

#include <deque>
#include <string>

#include "report/text_style.h"
#include "watch/sample.h"

namespace snug {

constexpr double kNearlyFull = 0.9;  // from here on a warning

// "70.2 GiB of 79.1 GiB (89 %)", what was seen before as a row of bars, and who has it: for a terminal, several lines.
std::string watch_screen(const MemorySample& sample, const std::deque<double>& shares, const TextStyle& style);

// The same on one line, for a log.
std::string watch_line(const MemorySample& sample, double seconds);

// One JSON object on one line.
std::string watch_json(const MemorySample& sample, double seconds);

}  // namespace snug
