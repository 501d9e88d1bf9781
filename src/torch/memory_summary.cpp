#include "torch/memory_summary.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/trimmed.h"
#include "torch/words.h"

namespace snug {

namespace {

// "10240 KiB", "12 B", "3 MB" (1.x wrote units of 1024 so) as bytes.
std::optional<int64_t> cell_bytes(std::string_view cell) {
  constexpr std::string_view kPrefixes = "BKMGTP";
  cell = trimmed(cell);
  const std::string_view digits = digits_of(cell);
  int64_t value = number_at(digits);
  const std::string_view unit = trimmed(cell.substr(digits.size()));
  const size_t power = unit.empty() ? std::string_view::npos : kPrefixes.find(unit[0]);
  if (value < 0 || power == std::string_view::npos || (power > 0 && !unit.ends_with('B'))) return std::nullopt;
  for (size_t i = 0; i < power; ++i)
    if (__builtin_mul_overflow(value, int64_t{1024}, &value)) return std::nullopt;
  return value;
}

struct Row {
  std::string_view label, key;
  MemoryFigure MemorySummary::*figure;
};
constexpr std::array<Row, 5> kRows = {{{"Allocated memory", "allocated_bytes", &MemorySummary::allocated},
                                       {"Active memory", "active_bytes", &MemorySummary::active},
                                       {"Requested memory", "requested_bytes", &MemorySummary::requested},
                                       {"GPU reserved memory", "reserved_bytes", &MemorySummary::reserved},
                                       {"Non-releasable memory", "inactive_split_bytes", &MemorySummary::non_releasable}}};

// The whole number behind `label`; none where digits were cut off by the end of the text.
std::optional<int64_t> number_behind(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trimmed(text.substr(at + label.size()));
  const std::string_view digits = digits_of(rest);
  const int64_t value = number_at(digits);
  return value >= 0 && digits.size() < rest.size() ? std::optional(value) : std::nullopt;
}

void read_row(MemorySummary& summary, std::string_view line) {
  while (line.starts_with('|') || line.starts_with(' ')) line.remove_prefix(1);
  for (const Row& row : kRows) {
    if (!line.starts_with(row.label)) continue;
    MemoryFigure& figure = summary.*row.figure;
    std::array<std::string_view, 3> cells;
    size_t count = 0;
    while (count < cells.size()) {
      const size_t bar = line.find('|');
      if (bar == std::string_view::npos) break;
      cells[count++] = line.substr(0, bar);
      line.remove_prefix(bar + 1);
    }
    if (count > 1) figure.now = cell_bytes(cells[1]);
    if (count > 2) figure.peak = cell_bytes(cells[2]);
    return;
  }
}

std::optional<MemorySummary> read_table(std::string_view text) {
  constexpr std::string_view kTitle = "memory summary, device ID";
  const size_t title = text.rfind(kTitle);
  if (title == std::string_view::npos) return std::nullopt;
  text.remove_prefix(title);
  MemorySummary summary;
  if (const auto device = number_behind(text, kTitle); device && *device < 4096) summary.device = static_cast<int>(*device);
  constexpr int kMostLines = 80;
  for (int lines = 0; lines < kMostLines && !text.empty(); ++lines) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!summary.ooms) summary.ooms = number_behind(line, "CUDA OOMs:");
    if (!summary.retries) summary.retries = number_behind(line, "cudaMalloc retries:");
    read_row(summary, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return summary;
}

// The number of 'KEY': 123, ("KEY", 123) or KEY: 123; the last in the text.
std::optional<int64_t> value_of(std::string_view text, const std::string& key) {
  for (size_t at = text.rfind(key); at != std::string_view::npos && at + 1 > 0;
       at = at == 0 ? std::string_view::npos : text.rfind(key, at - 1)) {
    const std::string_view rest = text.substr(at + key.size());
    const size_t first = rest.substr(0, 8).find_first_not_of("'\",:= ");
    if (first == 0 || first == std::string_view::npos) continue;
    const std::string_view digits = digits_of(rest.substr(first));
    const int64_t value = number_at(digits);
    if (value >= 0 && first + digits.size() < rest.size()) return value;
  }
  return std::nullopt;
}

std::optional<MemorySummary> read_dictionary(std::string_view text) {
  if (!contains(text, "allocated_bytes.all.")) return std::nullopt;
  MemorySummary summary;
  bool any = false;
  for (const Row& row : kRows) {
    MemoryFigure& figure = summary.*row.figure;
    figure.now = value_of(text, std::string(row.key) + ".all.current");
    figure.peak = value_of(text, std::string(row.key) + ".all.peak");
    any = any || figure.now || figure.peak;
  }
  summary.retries = value_of(text, "num_alloc_retries");
  summary.ooms = value_of(text, "num_ooms");
  return any ? std::optional(summary) : std::nullopt;
}

}  // namespace

std::optional<MemorySummary> read_memory_summary(std::string_view text) {
  if (auto table = read_table(text)) return table;
  return read_dictionary(text);
}

}  // namespace snug
