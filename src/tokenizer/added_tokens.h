#pragma once
// Added tokens: strings such as "<|im_start|>" that are found in the text before anything else is done to it and become one
// id each. At every place the leftmost match counts, and of those the longest.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "tokenizer/regex.h"

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
  AddedTokenMatcher();

  // Adds a token under `content` (its normalized form, if it is looked for there); the first of two with the same content
  // counts.
  void add(std::string content, const AddedToken& token);

  // A part of the text: a token, or (id -1) text to go on with.
  struct Part {
    std::string_view text;
    int32_t id;
  };

  // Calls `part` for the parts of `text` (valid UTF-8), in order. Not for two threads at once.
  void split(std::string_view text, const std::function<void(const Part&)>& part) const;

 private:
  struct Flags {
    int32_t id;
    bool single_word, lstrip, rstrip;
  };
  struct Hit {
    size_t length = 0;
    const Flags* flags = nullptr;
  };

  Hit longest_at(std::string_view rest) const;

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view content) const { return hash_bytes(content); }
  };

  std::unordered_map<std::string, Flags, Hash, std::equal_to<>> flags_;  // by content
  std::array<std::vector<size_t>, 256> lengths_;                         // of contents, by first byte, longest first
  Regex word_, space_;                                                   // one character
};

}  // namespace snug
