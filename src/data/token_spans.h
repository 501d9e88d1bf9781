#pragma once
// Which bytes of a text each of its tokens stands for.

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace snug {

struct TokenSpan {
  int64_t begin = 0, end = 0;  // bytes of the text
};

// The ids of `text` without special tokens around it, and the span of each. Throws Error if they cannot be told.
void encode_with_spans(const Tokenizer& tokenizer, std::string_view text, std::vector<int32_t>& ids,
                       std::vector<TokenSpan>& spans);

}  // namespace snug
