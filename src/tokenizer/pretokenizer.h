#pragma once
// Pre-tokenization: a text is cut into the words within which BPE merges. A chain of cuts, as tokenizer.json lists them,
// that ends with the byte level. It knows nothing of JSON or ids.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"

namespace snug {

// What becomes of a match when a text is split (names as in tokenizer.json).
enum class SplitBehavior : uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };

class Pretokenizer {
 public:
  // Cuts every piece at the matches of `regex`; `invert` cuts at what lies between them.
  void add_split(Regex regex, SplitBehavior behavior, bool invert);

  // From here every piece that does not start with a space gets one.
  void add_prefix_space();

  // Calls `word` for every pre-token of `text` (valid UTF-8, raw bytes), in order. Not for two threads at once.
  void cut(std::string_view text, const std::function<void(std::string_view)>& word) const { step(0, text, word); }

 private:
  struct Step {
    std::vector<Regex> regex;  // one, or none: prefix a space
    SplitBehavior behavior = SplitBehavior::isolated;
    bool invert = false;
  };
  using Sink = std::function<void(std::string_view)>;

  void step(size_t index, std::string_view piece, const Sink& word) const;

  std::vector<Step> steps_;
};

}  // namespace snug
