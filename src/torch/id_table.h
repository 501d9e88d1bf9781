#pragma once
// Finds equal things by their hash: an open-addressing table of numbers, eight bytes a slot. What a number stands for, and
// what is equal, its user knows.

#include <cstdint>
#include <vector>

namespace snug {

class IdTable {
 public:
  // The number of the thing of this hash for which `same(number)` holds; `fresh`, now added, if there is none.
  template <class Same>
  uint32_t find_or_add(uint64_t hash, uint32_t fresh, Same same) {
    return find_or_make(hash, same, [fresh] { return fresh; });
  }

  // The same, where `make()` gives the number of what is not there yet. It must not touch this table.
  template <class Same, class Make>
  uint32_t find_or_make(uint64_t hash, Same same, Make make) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    const auto mark = static_cast<uint32_t>(hash >> 32U);
    const size_t mask = slots_.size() - 1;
    size_t at = mark & mask;
    for (; slots_[at].number != 0; at = (at + 1) & mask)
      if (slots_[at].mark == mark && same(slots_[at].number - 1)) return slots_[at].number - 1;
    const uint32_t made = make();
    slots_[at] = {mark, made + 1};
    ++used_;
    return made;
  }

 private:
  struct Slot {
    uint32_t mark = 0, number = 0;  // 0: empty
  };

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot slot : old) {
      if (slot.number == 0) continue;
      size_t at = slot.mark & mask;
      while (slots_[at].number != 0) at = (at + 1) & mask;
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace snug
