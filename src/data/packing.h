#pragma once
// Packing of whole documents into rows by best-fit decreasing: the longest first, each into the fullest row that still has
// room (D. S. Johnson, "Near-optimal bin packing algorithms", 1973). Lengths alone are known here.

#include <cstdint>
#include <span>
#include <vector>

namespace snug {

// Row r holds documents[first[r]] … documents[first[r + 1] - 1], in ascending order. Rows are ordered by their first
// document.
struct PackedRows {
  std::vector<int64_t> first;      // [rows + 1]
  std::vector<int32_t> documents;  // [documents]

  int64_t rows() const { return static_cast<int64_t>(first.size()) - 1; }
};

// Packs documents of `lengths` tokens (each 1 … seq_len) into rows of at most `seq_len` tokens. O(n log seq_len); the same
// lengths give the same rows. Throws Error if a length is out of range.
PackedRows pack(std::span<const int32_t> lengths, int64_t seq_len);

// One document a row, in order.
PackedRows one_each(int64_t documents);

}  // namespace snug
