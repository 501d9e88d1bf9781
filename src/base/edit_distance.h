#pragma once
// The nearest of several names, for messages such as "did you mean 'learning_rate'?".

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace snug {

// Edits (insert, remove, replace) that turn `a` into `b` (Levenshtein).
inline int64_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// The most edits that a slip of the pen makes of a name of this length.
constexpr int64_t most_slips(size_t length) {
  return length <= 3 ? 1 : std::max<int64_t>(2, static_cast<int64_t>(length) / 3);
}

}  // namespace snug
