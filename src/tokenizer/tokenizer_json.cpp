// tokenizer.json: model, vocabulary, merges and added tokens.

#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/json_document.h"
#include "tokenizer/json_node.h"
#include "tokenizer/tokenizer_components.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kMaxAddedToken = 1024;  // bytes; published ones have some dozens

void read_vocabulary(const JsonNode& node, Vocabulary& vocabulary) {
  dom::object object;
  if (node.element().get(object) != simdjson::SUCCESS) node.refuse("should be an object of token: id");
  // simdjson's size saturates at 2^24 - 1, above the largest vocabulary; eight characters a token is the usual mean.
  vocabulary.reserve(object.size(), object.size() * 8);
  for (const auto field : object) {
    int64_t id = 0;
    if (field.value.get(id) != simdjson::SUCCESS || id < 0 || id >= Vocabulary::kMaxIds) {
      node.refuse(
          "the id of " + quote(field.key) + " is not a whole number from 0 to " + std::to_string(Vocabulary::kMaxIds - 1),
          kDamaged);
    }
    switch (vocabulary.add(field.key, static_cast<int32_t>(id))) {
      case Vocabulary::Outcome::added: break;
      case Vocabulary::Outcome::token_taken: node.refuse(quote(field.key) + " stands twice", kDamaged);
      case Vocabulary::Outcome::id_taken: node.refuse("id " + std::to_string(id) + " stands for two tokens", kDamaged);
    }
  }
  if (vocabulary.size() == 0) node.refuse("is empty", kDamaged);
}

class MergeReader {
 public:
  MergeReader(const JsonNode& node, const Vocabulary& vocabulary, MergeTable& merges)
      : node_(node), vocabulary_(vocabulary), merges_(merges) {}

  void read() {
    dom::array list;
    if (node_.element().get(list) != simdjson::SUCCESS) node_.refuse("should be a list");
    merges_.reserve(list.size());
    for (const dom::element item : list) {
      std::string_view text;
      dom::array pair;
      if (item.get(text) == simdjson::SUCCESS) {
        read_string(text);
      } else if (item.get(pair) == simdjson::SUCCESS && pair.size() == 2) {
        std::string_view right;
        if (pair.at(0).get(text) != simdjson::SUCCESS || pair.at(1).get(right) != simdjson::SUCCESS)
          refuse("is no pair of strings");
        add(text, right);
      } else {
        refuse("is neither a pair nor a string");
      }
      ++index_;
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    node_.refuse("merge " + std::to_string(index_) + " " + what, kDamaged);
  }

  // As "a b". Older files began with a line of merges.txt.
  void read_string(std::string_view text) {
    if (text.starts_with("#version")) return;
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      refuse("(" + quote(text) + ") cannot be split in two at one space");
    }
    add(text.substr(0, space), text.substr(space + 1));
  }

  int32_t id_of(std::string_view token) const {
    const int32_t id = vocabulary_.find(token);
    if (id < 0) refuse("names " + quote(token) + ", which the vocabulary lacks");
    return id;
  }

  void add(std::string_view left, std::string_view right) {
    joined_.assign(left).append(right);
    const int32_t left_id = id_of(left);
    const int32_t right_id = id_of(right);
    // Most merges make the token that the last one made, or the next: a look at two neighbours saves a search.
    const auto made = [&](int32_t id) { return vocabulary_.contains(id) && vocabulary_.token(id) == joined_; };
    if (!made(result_) && !made(++result_)) result_ = id_of(joined_);
    merges_.add(left_id, right_id, result_);
  }

  const JsonNode& node_;
  const Vocabulary& vocabulary_;
  MergeTable& merges_;
  std::string joined_;
  int32_t result_ = -1;
  int64_t index_ = 0;
};

void require_empty_string(const JsonNode& model, std::string_view key) {
  const auto node = model.find(key);
  if (node && !node->string().empty()) node->refuse("word prefixes and suffixes are not supported", "use another model");
}

void read_model(const JsonNode& model, TokenizerParts& parts) {
  if (const auto type = model.find("type"); type && type->string() != "BPE") {
    model.refuse_type("BPE; Unigram, WordPiece and WordLevel are not supported");
  }
  model.allow({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
               "byte_fallback", "ignore_merges", "vocab", "merges"});
  read_vocabulary(model.at("vocab"), parts.model);
  const JsonNode merges = model.at("merges");
  MergeReader(merges, parts.model, parts.bpe.merges()).read();
  if (const auto dropout = model.find("dropout")) {
    double rate = -1.0;
    if (dropout->element().get(rate) != simdjson::SUCCESS || rate != 0.0)
      dropout->refuse("merge dropout is not supported", "set it to null");
  }
  require_empty_string(model, "continuing_subword_prefix");
  require_empty_string(model, "end_of_word_suffix");
}

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
    Piece piece;
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
  read_model(model, parts);
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
