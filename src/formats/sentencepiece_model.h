#pragma once
// tokenizer.model: the pieces of a SentencePiece model with their scores, from its protobuf (google/sentencepiece,
// sentencepiece_model.proto). Reads what GGUF needs and skips the rest.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

struct SentencePiece {
  std::string text;
  float score = 0.0F;
  int32_t type = 1;  // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
};

struct SentencePieceModel {
  std::vector<SentencePiece> pieces;  // by id
  bool add_dummy_prefix = true;       // a text begins as if a space stood before it
};

// Throws Error: not such a file, or cut short.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& where);

}  // namespace snug
