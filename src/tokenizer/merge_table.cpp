#include "tokenizer/merge_table.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace snug {

void MergeTable::reserve(size_t merges) { grow(std::bit_ceil(std::max<size_t>(merges + merges / 3, 16))); }

size_t MergeTable::slot_of(int32_t left, int32_t right) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = hash_word(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right), 0) & mask;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::grow(size_t slots) {
  if (slots <= slots_.size()) return;
  std::vector<Merge> old(slots);
  old.swap(slots_);
  for (const Merge& merge : old) {
    if (merge.left >= 0) slots_[slot_of(merge.left, merge.right)] = merge;
  }
}

void MergeTable::add(int32_t left, int32_t right, int32_t result) {
  if (4 * (pairs_ + 1) > 3 * slots_.size()) grow(std::max<size_t>(16, slots_.size() * 2));
  Merge& merge = slots_[slot_of(left, right)];
  if (merge.left < 0) ++pairs_;
  merge = {left, right, next_rank_++, result};
}

}  // namespace snug
