// tokenizer.json: the whole file, what its model and its other parts decide together, and added tokens.

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/json_document.h"
#include "tokenizer/json_node.h"
#include "tokenizer/tokenizer_components.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

constexpr size_t kMaxAddedToken = 1024;  // bytes; published ones have some dozens

// True if the vocabulary spells every byte in the byte alphabet.
bool spells_bytes(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    kByteAlphabet.append(character, static_cast<unsigned char>(byte));
    if (vocabulary.find(character) < 0) return false;
  }
  return true;
}

// Model and pre-tokenizer together: whether words come as bytes or as characters.
void finish_model(const JsonNode& model, TokenizerParts& parts) {
  Bpe::Options options;
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  options.bytes = parts.pretokenizer.ends_in_bytes() && (!options.byte_fallback || spells_bytes(parts.model));
  if (options.bytes) parts.pretokenizer.keep_raw_bytes();
  const auto unknown = model.find("unk_token");
  if (unknown) options.unknown = parts.model.find(unknown->string());
  parts.bpe.finish(parts.model, options);
  if (unknown && options.unknown < 0 && !parts.bpe.covers_all()) {
    unknown->refuse(quote(unknown->string()) + " is not in the vocabulary", kDamaged);
  }
}

AddedToken read_added_token(const JsonNode& node) {
  node.allow({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  const int64_t id = node.at("id").integer();
  if (id < 0 || id >= Vocabulary::kMaxIds) node.at("id").refuse("is out of range: " + std::to_string(id), kDamaged);
  token.id = static_cast<int32_t>(id);
  token.content = node.at("content").string();
  if (token.content.size() > kMaxAddedToken) node.at("content").refuse("is longer than 1 KiB", kDamaged);
  token.single_word = node.boolean_or("single_word", false);
  token.lstrip = node.boolean_or("lstrip", false);
  token.rstrip = node.boolean_or("rstrip", false);
  token.special = node.boolean_or("special", false);
  token.normalized = node.boolean_or("normalized", !token.special);
  return token;
}

// Tokens that the model lacks get the ids after the model's, in their order, whatever the file says: so does `tokenizers`.
class AddedTokenReader {
 public:
  explicit AddedTokenReader(TokenizerParts& parts) : parts_(parts), next_id_(static_cast<int32_t>(parts.model.count())) {}

  void read(const JsonNode& list) {
    for (const JsonNode& node : list.array()) {
      AddedToken token = read_added_token(node);
      if (token.content.empty()) continue;
      place(node, token);
      tokens_.insert_or_assign(token.id, token);
    }
    for (const auto& [id, token] : tokens_) prepare(token);
    for (const auto& [id, token] : tokens_) {
      const auto other = parts_.decoded_as.find(id);
      if (special_.contains(other == parts_.decoded_as.end() ? token.content : other->second)) parts_.special.insert(id);
    }
  }

 private:
  void place(const JsonNode& node, AddedToken& token) {
    const int32_t known = parts_.find(token.content);
    if (known >= 0 && known != token.id) {
      node.refuse(
          quote(token.content) + " has id " + std::to_string(token.id) + " here and " + std::to_string(known) + " before",
          kDamaged);
    }
    if (known >= 0) return;
    if (parts_.model.contains(token.id) || parts_.added.contains(token.id) || parts_.model.contains(next_id_))
      node.refuse("id " + std::to_string(token.id) + " stands for two tokens", kDamaged);
    token.id = next_id_++;
    parts_.added.add(token.content, token.id);
  }

  void prepare(const AddedToken& token) {
    if (token.special) special_.insert(token.content);
    if (!token.normalized) return parts_.raw_tokens.add(token.content, token);
    TextPiece piece;
    piece.text = token.content;
    const std::string normalized(parts_.normalizer.apply(piece, false, scratch_).text);
    parts_.normalized_tokens.add(normalized, token);
    if (normalized != token.content) parts_.decoded_as.emplace(token.id, normalized);
  }

  TokenizerParts& parts_;
  int32_t next_id_;
  std::map<int32_t, AddedToken> tokens_;
  std::unordered_set<std::string> special_;
  Normalizer::Scratch scratch_;
};

}  // namespace

void read_tokenizer_json(std::string json, const std::string& where, TokenizerParts& parts) {
  simdjson::dom::parser parser;
  const JsonNode root(parse_json(parser, std::move(json), where), where);
  // How to cut and pad is the recipe's business, so `truncation` and `padding` are not read.
  root.allow({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
              "model"});
  const JsonNode model = root.at("model");
  read_model(model, parts.model, parts.bpe.merges());
  if (const auto normalizer = root.find("normalizer")) read_normalizer(*normalizer, parts.normalizer);
  if (const auto pretokenizer = root.find("pre_tokenizer")) read_pretokenizer(*pretokenizer, parts.pretokenizer);
  if (const auto processor = root.find("post_processor")) read_post_processor(*processor, parts.prefix, parts.suffix);
  if (const auto decoder = root.find("decoder")) {
    read_decoder(*decoder, parts.decoder);
  } else {
    parts.decoder.add(Decoder::Join{});
  }
  parts.needs_origins = parts.pretokenizer.asks_for_origins(!parts.normalizer.empty());
  finish_model(model, parts);
  if (const auto added = root.find("added_tokens")) AddedTokenReader(parts).read(*added);
}

}  // namespace snug
