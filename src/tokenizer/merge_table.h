#pragma once
// The merges of byte-pair encoding: for a pair of ids its rank and what it becomes, in one flat table.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace snug {

struct Merge {
  int32_t left = -1, right = -1;
  int32_t rank = 0, result = 0;
};

class MergeTable {
 public:
  // Prepares for `merges` merges; a hint.
  void reserve(size_t merges);

  // Adds the next merge: its rank is the number of merges before it. A pair given twice takes the later rank.
  void add(int32_t left, int32_t right, int32_t result);

  // The merge of this pair, or null.
  const Merge* find(int32_t left, int32_t right) const {
    if (slots_.empty()) return nullptr;
    const Merge& merge = slots_[slot_of(left, right)];
    return merge.left < 0 ? nullptr : &merge;
  }

  template <typename F>
  void for_each(const F& each) const {
    for (const Merge& merge : slots_) {
      if (merge.left >= 0) each(merge);
    }
  }

  int64_t bytes() const { return static_cast<int64_t>(slots_.capacity() * sizeof(Merge)); }

 private:
  size_t slot_of(int32_t left, int32_t right) const;
  void grow(size_t slots);

  std::vector<Merge> slots_;  // open addressing, at most three quarters full; left -1 is empty
  size_t pairs_ = 0;
  int32_t next_rank_ = 0;
};

}  // namespace snug
