#include "data/token_spans.h"

#include <algorithm>

#include "base/error.h"

namespace snug {

// Tokens of byte-level BPE stand for as many bytes as their spelling has characters; added tokens are spelled as they stand
// in the text.
void encode_with_spans(const Tokenizer& tokenizer, std::string_view text, std::vector<int32_t>& ids,
                       std::vector<TokenSpan>& spans) {
  ids = tokenizer.encode(text, false);
  spans.clear();
  int64_t at = 0;
  for (const int32_t id : ids) {
    const std::string_view token = tokenizer.token_of(id);
    const bool verbatim = text.substr(static_cast<size_t>(at)).starts_with(token);
    const auto characters =
        std::ranges::count_if(token, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
    const int64_t bytes = verbatim ? static_cast<int64_t>(token.size()) : characters;
    spans.push_back({at, at + bytes});
    at = std::min(at + bytes, static_cast<int64_t>(text.size()));
  }
  if (at != static_cast<int64_t>(text.size())) throw Error("the bytes of its tokens cannot be told");
}

}  // namespace snug
