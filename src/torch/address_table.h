#pragma once
// What lies at an address: an open-addressing table with linear probing, which closes the gap where something is taken out
// (Knuth, The Art of Computer Programming 3, 6.4, algorithm R). Addresses are not negative.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace snug {

template <class Value>
class AddressTable {
 public:
  // None may lie at `address` yet.
  void insert(int64_t address, Value value) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    put({address, value});
    ++used_;
  }

  // Null if nothing lies there.
  const Value* find(int64_t address) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place_of(address)];
    return slot.address == address && address != kEmpty ? &slot.value : nullptr;
  }

  void erase(int64_t address) {
    if (slots_.empty()) return;
    size_t gap = place_of(address);
    if (slots_[gap].address != address || address == kEmpty) return;
    for (size_t at = next(gap); slots_[at].address != kEmpty; at = next(at)) {
      const size_t wanted = first_of(slots_[at].address);
      const bool stays = gap <= at ? gap < wanted && wanted <= at : gap < wanted || wanted <= at;
      if (stays) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
    --used_;
  }

 private:
  static constexpr int64_t kEmpty = -1;
  struct Slot {
    int64_t address = kEmpty;
    Value value{};
  };

  size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

  // Blocks are multiples of 512 bytes: what differs is spread by a product (Fibonacci hashing, ibid.).
  size_t first_of(int64_t address) const {
    return static_cast<size_t>((static_cast<uint64_t>(address) * 0x9e3779b97f4a7c15U) >> 32U) & (slots_.size() - 1);
  }

  // Where `address` lies, or would.
  size_t place_of(int64_t address) const {
    size_t at = first_of(address);
    while (slots_[at].address != kEmpty && slots_[at].address != address) at = next(at);
    return at;
  }

  void put(const Slot& slot) { slots_[place_of(slot.address)] = slot; }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.address != kEmpty) put(slot);
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace snug
