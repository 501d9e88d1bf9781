#pragma once
// What a Tokenizer is made of, and the readers that fill it from JSON. For this room alone.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenizer.h"
#include "tokenizer/vocabulary.h"

namespace snug {

struct TokenizerParts {
  Vocabulary model, added;  // added: tokens that the model lacks
  Bpe bpe;
  Normalizer normalizer;
  AddedTokenMatcher raw_tokens, normalized_tokens;      // looked for before and after normalization
  std::unordered_map<int32_t, std::string> decoded_as;  // added tokens that decode as their normalized form
  std::unordered_set<int32_t> special;                  // left out when decoding
  Pretokenizer pretokenizer;
  std::vector<int32_t> prefix, suffix;  // ids that the post-processor puts around a text
  Decoder decoder;
  std::map<std::string, std::string, std::less<>> special_tokens;  // "eos_token": "</s>"; from the files beside
  std::map<std::string, int32_t, std::less<>> special_ids;         // of those that the vocabulary has
  bool needs_origins = false;                                      // also where no spans are asked for

  // Of added tokens and the model's. -1: none.
  int32_t find(std::string_view token) const {
    const int32_t id = added.find(token);
    return id >= 0 ? id : model.find(token);
  }
  std::string_view token(int32_t id) const { return added.contains(id) ? added.token(id) : model.token(id); }
};

// Fills all but the special tokens. A text with spare capacity is not copied. Throws Error.
void read_tokenizer_json(std::string json, const std::string& where, TokenizerParts& parts);

// Fills the special tokens from the files beside `tokenizer.json`. Throws Error if a file is damaged or names a bos or eos
// that the vocabulary lacks.
void read_special_tokens(const std::filesystem::path& directory, TokenizerParts& parts);

}  // namespace snug
