#include "tokenizer/safe_cuts.h"

#include <algorithm>

#include "base/utf8.h"

namespace snug {

void SafeCuts::add_token(std::string_view token) {
  if (token.empty()) return;
  CodePoint left = code_point_at(token, 0);
  for (size_t at = left.bytes; at < token.size();) {
    const CodePoint right = code_point_at(token, at);
    if ((left.value | right.value) < 128) {
      ascii_[left.value][right.value / 64] |= uint64_t{1} << right.value % 64;
    } else {
      insert(key(left.value, right.value));
    }
    at += right.bytes;
    left = right;
  }
}

void SafeCuts::insert(uint64_t wanted) {
  if (2 * (count_ + 1) > pairs_.size()) {
    std::vector<uint64_t> old(std::max<size_t>(1024, pairs_.size() * 2));
    old.swap(pairs_);
    count_ = 0;
    for (const uint64_t pair : old) {
      if (pair != 0) insert(pair);
    }
  }
  const size_t mask = pairs_.size() - 1;
  size_t at = hash_word(wanted, 0) & mask;
  while (pairs_[at] != 0 && pairs_[at] != wanted) at = (at + 1) & mask;
  count_ += pairs_[at] == 0 ? 1 : 0;
  pairs_[at] = wanted;
}

}  // namespace snug
