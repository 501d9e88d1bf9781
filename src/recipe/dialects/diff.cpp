// Unified diff of two texts of which one was made from the other by few small edits.

#include <fmt/format.h>

#include <algorithm>

#include "recipe/dialects/changes.h"

namespace snug {

namespace {

constexpr size_t kContext = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

struct Line {
  char mark;  // ' ', '-', '+'
  std::string_view text;
};

// Walks both texts; where they part, the nearest line that they share again is looked for.
std::vector<Line> compare(const std::vector<std::string_view>& before, const std::vector<std::string_view>& after) {
  std::vector<Line> lines;
  size_t a = 0, b = 0;
  while (a < before.size() || b < after.size()) {
    if (a < before.size() && b < after.size() && before[a] == after[b]) {
      lines.push_back({' ', before[a]});
      ++a;
      ++b;
      continue;
    }
    size_t skip_a = before.size() - a, skip_b = after.size() - b;
    const size_t farthest = std::min<size_t>(skip_a + skip_b, 200);
    for (size_t sum = 1; sum < farthest; ++sum) {
      bool found = false;
      for (size_t i = 0; i <= sum && !found; ++i) {
        const size_t at = a + i, bt = b + (sum - i);
        if (at >= before.size() || bt >= after.size() || before[at] != after[bt]) continue;
        // Not on the strength of an empty line alone.
        const bool next = at + 1 >= before.size() || bt + 1 >= after.size() || before[at + 1] == after[bt + 1];
        if (!next && before[at].size() < 3) continue;
        skip_a = i;
        skip_b = sum - i;
        found = true;
      }
      if (found) break;
    }
    for (size_t i = 0; i < skip_a; ++i) lines.push_back({'-', before[a++]});
    for (size_t i = 0; i < skip_b; ++i) lines.push_back({'+', after[b++]});
  }
  return lines;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, const std::string& name) {
  if (before == after) return {};
  const std::vector<Line> lines = compare(lines_of(before), lines_of(after));
  std::string diff = fmt::format("--- {0}\n+++ {0}\n", name);
  size_t old_line = 1, new_line = 1;
  for (size_t at = 0; at < lines.size();) {
    size_t change = at;
    while (change < lines.size() && lines[change].mark == ' ') ++change;
    if (change == lines.size()) break;
    const size_t begin = change - std::min(change - at, kContext);
    size_t end = change;  // behind the last changed line of the hunk
    for (size_t i = change; i < lines.size() && i < end + 2 * kContext + 1; ++i)
      if (lines[i].mark != ' ') end = i + 1;
    const size_t stop = std::min(end + kContext, lines.size());
    old_line += begin - at;
    new_line += begin - at;
    size_t old_count = 0, new_count = 0;
    std::string body;
    for (size_t i = begin; i < stop; ++i) {
      old_count += lines[i].mark != '+' ? 1 : 0;
      new_count += lines[i].mark != '-' ? 1 : 0;
      body += lines[i].mark;
      body += lines[i].text;
      if (!lines[i].text.ends_with('\n')) body += "\n\\ No newline at end of file\n";
    }
    diff += fmt::format("@@ -{},{} +{},{} @@\n{}", old_count == 0 ? old_line - 1 : old_line, old_count,
                        new_count == 0 ? new_line - 1 : new_line, new_count, body);
    old_line += old_count;
    new_line += new_count;
    at = stop;
  }
  return diff;
}

}  // namespace snug
