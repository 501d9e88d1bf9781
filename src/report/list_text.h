#pragma once
// Lists on a screen of 80 columns.

#include <string>
#include <vector>

namespace snug {

// "a, b, c", broken into lines that go on below column `indent`.
inline std::string list_text(const std::vector<std::string>& items, size_t indent) {
  constexpr size_t kWidth = 80;
  std::string text;
  size_t column = indent;
  for (const std::string& item : items) {
    if (!text.empty()) {
      text += ',';
      const bool fits = column + 2 + item.size() < kWidth;
      text += fits ? " " : "\n" + std::string(indent, ' ');
      column = fits ? column + 2 : indent;
    }
    text += item;
    column += item.size();
  }
  return text;
}

}  // namespace snug
