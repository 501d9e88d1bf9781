#pragma once
// A part of a file's tensor that is read and written as a tensor of its own: of every row of the file's bytes the same
// stretches. What is cut along the first axis has one row.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace snug {

struct TensorCut {
  struct Stretch {
    int64_t begin = 0, bytes = 0;  // in a row
  };
  int64_t row_bytes = 0;                // in the file
  std::vector<Stretch> stretches = {};  // ascending

  // Of a row that the part has.
  int64_t part_bytes() const {
    int64_t sum = 0;
    for (const Stretch& stretch : stretches) sum += stretch.bytes;
    return sum;
  }

  // visit(byte of the file's tensor, bytes) for bytes [begin, begin + bytes) of the part, in their order.
  template <class Visit>
  void for_each_run(int64_t begin, int64_t bytes, const Visit& visit) const {
    const int64_t in_row = part_bytes(), end = begin + bytes;
    for (int64_t row = begin / in_row; begin < end; ++row) {
      int64_t from = row * in_row;
      for (const Stretch& stretch : stretches) {
        const int64_t first = std::max(begin, from), last = std::min(end, from + stretch.bytes);
        if (first < last) visit(row * row_bytes + stretch.begin + (first - from), last - first);
        from += stretch.bytes;
      }
      begin = std::min(end, from);
    }
  }
};

// The same of a tensor that may be whole.
template <class Visit>
void for_each_run(const TensorCut* cut, int64_t begin, int64_t bytes, const Visit& visit) {
  cut == nullptr ? visit(begin, bytes) : cut->for_each_run(begin, bytes, visit);
}

}  // namespace snug
