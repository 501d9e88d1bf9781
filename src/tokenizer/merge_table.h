#pragma once
// The merges of byte-pair encoding: for a pair of ids its rank and what it becomes, in one flat table.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hash.h"

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

  // The merge of this pair, or null. Most pairs are none, and nearly all of those a small filter knows.
  const Merge* find(int32_t left, int32_t right) const {
    const uint64_t hash = hash_of(left, right);
    if (slots_.empty() || (filter_[hash >> 38 & (filter_.size() - 1)] >> (hash >> 32 & 63U) & 1U) == 0) return nullptr;
    const Merge& merge = slots_[slot_of(left, right, hash)];
    return merge.left < 0 ? nullptr : &merge;
  }

  template <typename F>
  void for_each(const F& each) const {
    for (const Merge& merge : slots_) {
      if (merge.left >= 0) each(merge);
    }
  }

  int64_t bytes() const {
    return static_cast<int64_t>(slots_.capacity() * sizeof(Merge) + filter_.capacity() * sizeof(uint64_t));
  }

 private:
  static uint64_t hash_of(int32_t left, int32_t right) {
    return hash_word(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right), 0);
  }
  size_t slot_of(int32_t left, int32_t right, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) slot = (slot + 1) & mask;
    return slot;
  }
  void insert(const Merge& merge);
  void grow(size_t slots);

  std::vector<Merge> slots_;      // open addressing, at most three quarters full; left -1 is empty
  std::vector<uint64_t> filter_;  // eight bits a slot, of which each pair sets one
  size_t pairs_ = 0;
  int32_t next_rank_ = 0;
};

}  // namespace snug
