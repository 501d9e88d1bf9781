#pragma once
// What a Tokenizer is made of, and the readers that fill it from JSON. For this room alone.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/vocabulary.h"

namespace snug {

struct TokenizerParts {
  Vocabulary vocabulary;  // the model's and the added tokens
  Bpe bpe;
  bool nfc = false;
  AddedTokenMatcher raw_tokens, normalized_tokens;  // looked for before and after normalization
  std::unordered_set<int32_t> special;              // left out when decoding
  Pretokenizer pretokenizer;
  std::vector<int32_t> prefix, suffix;  // ids that the post-processor puts around a text
  std::optional<int32_t> bos, eos;
};

// Fills all but bos and eos. A text with spare capacity is not copied. Throws Error.
void read_tokenizer_json(std::string json, const std::string& where, TokenizerParts& parts);

// Fills bos and eos from the files beside `tokenizer.json`. Throws Error if a file names a token that the vocabulary lacks.
void read_special_tokens(const std::filesystem::path& directory, TokenizerParts& parts);

}  // namespace snug
