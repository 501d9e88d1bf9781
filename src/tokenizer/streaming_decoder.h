#pragma once
// Ids to text while they are generated: each id gives the text that is complete with it. A character whose bytes are spread
// over several ids comes with the last of them.

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace snug {

class StreamingDecoder {
 public:
  // `tokenizer` must stay.
  explicit StreamingDecoder(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(&tokenizer), skip_special_tokens_(skip_special_tokens) {}

  // The new text that `id` completes, valid UTF-8; it may be empty.
  std::string push(int32_t id);

  // What is left: bytes that form no character come as U+FFFD. The next `push` starts anew.
  std::string finish();

 private:
  std::string release();

  const Tokenizer* tokenizer_;
  bool skip_special_tokens_;
  std::vector<int32_t> window_;  // the last ids: those that the next text may depend on, then those without text yet
  size_t released_ids_ = 0;      // of the window
  std::string released_;         // their text
};

}  // namespace snug
