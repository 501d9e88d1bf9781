#pragma once
// Where a word may be cut before it is merged, without any merge being lost: between two characters that no merge joins.
// What a merge makes is a token, and one that reached across the cut would hold the two characters side by side; so where no
// token that a merge makes does, the two sides never meet, and each can be merged (and remembered) alone.
// SentencePiece-style tokenizers hand whole texts over as one word; this gives them words.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace snug {

class SafeCuts {
 public:
  // To be called with every token that a merge makes.
  void add_token(std::string_view token);

  // True if some token holds `left` and `right` side by side.
  bool joined(uint32_t left, uint32_t right) const {
    if ((left | right) < 128) return (ascii_[left][right / 64] >> right % 64 & 1U) != 0;
    if (pairs_.empty()) return false;
    const uint64_t wanted = key(left, right);
    const size_t mask = pairs_.size() - 1;
    size_t at = hash_word(wanted, 0) & mask;
    while (pairs_[at] != 0 && pairs_[at] != wanted) at = (at + 1) & mask;
    return pairs_[at] != 0;
  }

  int64_t bytes() const { return static_cast<int64_t>(pairs_.capacity() * sizeof(uint64_t)); }

 private:
  static uint64_t key(uint32_t left, uint32_t right) { return (uint64_t{left} << 32 | right) + 1; }
  void insert(uint64_t wanted);

  std::array<std::array<uint64_t, 2>, 128> ascii_{};
  std::vector<uint64_t> pairs_;  // open addressing, at most half full; 0 is empty
  size_t count_ = 0;
};

}  // namespace snug
