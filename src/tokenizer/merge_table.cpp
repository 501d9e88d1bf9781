#include "tokenizer/merge_table.h"

#include <algorithm>
#include <bit>

namespace snug {

void MergeTable::reserve(size_t merges) { grow(std::bit_ceil(std::max<size_t>(merges + merges / 3, 16))); }

void MergeTable::insert(const Merge& merge) {
  const uint64_t hash = hash_of(merge.left, merge.right);
  filter_[hash >> 38 & (filter_.size() - 1)] |= uint64_t{1} << (hash >> 32 & 63U);
  slots_[slot_of(merge.left, merge.right, hash)] = merge;
}

void MergeTable::grow(size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<Merge> old(slots);
  old.swap(slots_);
  filter_.assign(slots / 8, 0);
  for (const Merge& merge : old) {
    if (merge.left >= 0) insert(merge);
  }
}

void MergeTable::add(int32_t left, int32_t right, int32_t result) {
  if (4 * (pairs_ + 1) > 3 * slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  if (find(left, right) == nullptr) ++pairs_;
  insert({left, right, next_rank_++, result});
}

}  // namespace snug
