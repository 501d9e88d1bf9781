#pragma once
// Added tokens: strings such as "<|im_start|>" that are found in the text before anything else is done to it and become one
// id each. At every place the leftmost match counts, and of those the longest.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/byte_trie.h"
#include "tokenizer/characters.h"

namespace snug {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // only where no letter stands beside it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and after it
  bool normalized = true;    // looked for in the normalized text
  bool special = false;      // left out when decoding
};

class AddedTokenMatcher {
 public:
  // Adds a token under `content` (its normalized form, if it is looked for there); the last of two with the same content
  // counts.
  void add(std::string_view content, const AddedToken& token) {
    if (content.empty()) return;
    trie_.add(content, static_cast<int32_t>(flags_.size()));
    flags_.push_back({token.id, token.single_word, token.lstrip, token.rstrip});
  }

  // Calls `part(begin, end, id)` for the parts of `text` (valid UTF-8), in order: tokens, and (id -1) text to go on with,
  // never empty.
  template <typename F>
  void split(std::string_view text, const F& part) const;

  int64_t bytes() const { return trie_.bytes() + static_cast<int64_t>(flags_.capacity() * sizeof(Flags)); }

 private:
  struct Flags {
    int32_t id;
    bool single_word, lstrip, rstrip;
  };

  static bool stands_alone(std::string_view text, size_t begin, size_t end) {
    if (begin > 0 && is_word_character(code_point_at(last_character(text.substr(0, begin)), 0).value)) return false;
    return end == text.size() || !is_word_character(code_point_at(text, end).value);
  }

  std::vector<Flags> flags_;
  ByteTrie trie_;  // numbers are places in flags_
};

template <typename F>
void AddedTokenMatcher::split(std::string_view text, const F& part) const {
  size_t done = 0;
  for (size_t at = 0; !trie_.empty() && at < text.size();) {
    if (!trie_.may_start(text[at])) {
      ++at;
      continue;
    }
    const ByteTrie::Hit hit = trie_.longest(text.substr(at));
    if (hit.number < 0) {
      ++at;
      continue;
    }
    const Flags& flags = flags_[static_cast<size_t>(hit.number)];
    size_t begin = at;
    size_t end = at + hit.length;
    at = end;
    if (flags.single_word && !stands_alone(text, begin, end)) continue;
    while (flags.lstrip && begin > done) {
      const std::string_view last = last_character(text.substr(0, begin));
      if (!is_space(code_point_at(last, 0).value)) break;
      begin -= last.size();
    }
    begin = flags.lstrip ? std::max(begin, done) : begin;
    while (flags.rstrip && end < text.size() && is_space(code_point_at(text, end).value)) end += utf8_length(text[end]);
    if (done < begin) part(done, begin, -1);
    part(begin, end, flags.id);
    done = end;
  }
  if (done < text.size()) part(done, text.size(), -1);
}

}  // namespace snug
