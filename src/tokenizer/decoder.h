#pragma once
// From tokens back to text: a chain of steps on a list of strings, as tokenizer.json lists them. It knows nothing of JSON or
// ids.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/pattern.h"

namespace snug {

class Decoder {
 public:
  struct ByteLevel {};  // all strings' bytes, as the byte alphabet spells them
  struct Replace {
    Pattern pattern;
    std::string content;
  };
  struct ByteFallback {};  // "<0xE2>" … become bytes
  struct Fuse {};          // one string of all
  struct Strip {           // up to so many of a character from both ends of each string
    std::string character;
    int64_t start, stop;
  };
  struct Metaspace {  // the mark is a space; in the first string (`trim`) it goes
    std::string mark;
    bool trim;
  };
  struct Suffix {  // the mark at words' ends is a space; in the last string it goes
    std::string mark;
  };
  struct Join {};  // strings with spaces between them: what a file without a decoder means
  using Step = std::variant<ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, Suffix, Join>;

  void add(Step&& step);

  // The text of `tokens`, valid UTF-8.
  std::string decode(std::vector<std::string> tokens) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace snug
