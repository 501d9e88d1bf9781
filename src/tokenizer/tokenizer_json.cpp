// tokenizer.json: model, vocabulary, merges and added tokens; bos and eos from the files beside it.

#include <algorithm>

#include "base/file.h"
#include "base/utf8.h"
#include "tokenizer/json_node.h"
#include "tokenizer/tokenizer_components.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

namespace dom = simdjson::dom;

constexpr int64_t kMaxSpecialTokens = int64_t{64} << 20;  // bytes
const std::string kDamaged = "the file is damaged; fetch it again";

// The text is given up as soon as it is parsed: it is the largest single thing in memory here.
dom::element parse_document(dom::parser& parser, std::string json, const std::string& where) {
  json.reserve(json.size() + simdjson::SIMDJSON_PADDING);  // simdjson reads beyond the end
  dom::element root;
  const auto error = parser.parse(json.data(), json.size(), false).get(root);
  if (error != simdjson::SUCCESS) {
    throw Error(std::string("is not valid JSON: ") + simdjson::error_message(error), where, kDamaged);
  }
  return root;
}

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
  MergeReader(const JsonNode& node, const Vocabulary& vocabulary, Bpe& bpe)
      : node_(node), vocabulary_(vocabulary), bpe_(bpe) {}

  void read() {
    dom::array list;
    if (node_.element().get(list) != simdjson::SUCCESS) node_.refuse("should be a list");
    bpe_.reserve(list.size());
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

  void read_string(std::string_view text) {
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
    bpe_.add_merge(left_id, right_id, id_of(joined_));
  }

  const JsonNode& node_;
  const Vocabulary& vocabulary_;
  Bpe& bpe_;
  std::string joined_;
  int64_t index_ = 0;
};

void require_empty_string(const JsonNode& model, std::string_view key) {
  const auto node = model.find(key);
  if (node && !node->string().empty())
    node->refuse("word prefixes and suffixes are not supported", "snug knows byte-level BPE");
}

void read_model(const JsonNode& model, TokenizerParts& parts) {
  if (const auto type = model.find("type"); type && type->string() != "BPE") {
    model.refuse_type("BPE (GPT-2, SmolLM2, Llama-3, Qwen)");
  }
  model.allow({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
               "byte_fallback", "ignore_merges", "vocab", "merges"});
  read_vocabulary(model.at("vocab"), parts.vocabulary);
  const JsonNode merges = model.at("merges");
  MergeReader(merges, parts.vocabulary, parts.bpe).read();
  if (model.boolean_or("byte_fallback", false)) {
    model.at("byte_fallback")
        .refuse("SentencePiece-style tokenizers (Llama-2, Mistral, TinyLlama, Gemma) are not supported",
                "choose a model with byte-level BPE: GPT-2, SmolLM2, Llama-3, Qwen");
  }
  if (const auto dropout = model.find("dropout")) {
    double rate = -1.0;
    if (dropout->element().get(rate) != simdjson::SUCCESS || rate != 0.0)
      dropout->refuse("merge dropout is not supported", "set it to null");
  }
  require_empty_string(model, "continuing_subword_prefix");
  require_empty_string(model, "end_of_word_suffix");
  Bpe::Options options;
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  if (const auto unknown = model.find("unk_token")) {
    options.unknown = parts.vocabulary.find(unknown->string());
    if (options.unknown < 0) unknown->refuse(quote(unknown->string()) + " is not in the vocabulary", kDamaged);
  }
  parts.bpe.finish(parts.vocabulary, options);
}

AddedToken read_added_token(const JsonNode& node) {
  node.allow({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  const int64_t id = node.at("id").integer();
  if (id < 0 || id >= Vocabulary::kMaxIds) node.at("id").refuse("is out of range: " + std::to_string(id), kDamaged);
  token.id = static_cast<int32_t>(id);
  token.content = node.at("content").string();
  if (token.content.empty()) node.at("content").refuse("is empty", kDamaged);
  token.single_word = node.boolean_or("single_word", false);
  token.lstrip = node.boolean_or("lstrip", false);
  token.rstrip = node.boolean_or("rstrip", false);
  token.special = node.boolean_or("special", false);
  token.normalized = node.boolean_or("normalized", !token.special);
  return token;
}

void read_added_tokens(const JsonNode& list, TokenizerParts& parts) {
  for (const JsonNode& node : list.array()) {
    const AddedToken token = read_added_token(node);
    const auto outcome = parts.vocabulary.add(token.content, token.id);
    if (outcome == Vocabulary::Outcome::token_taken && parts.vocabulary.find(token.content) != token.id) {
      node.refuse(quote(token.content) + " has id " + std::to_string(token.id) + " here and " +
                      std::to_string(parts.vocabulary.find(token.content)) + " before",
                  kDamaged);
    }
    if (outcome == Vocabulary::Outcome::id_taken)
      node.refuse("id " + std::to_string(token.id) + " stands for two tokens", kDamaged);
    if (token.special) parts.special.insert(token.id);
    if (!token.normalized) {
      parts.raw_tokens.add(token.content, token);
    } else {
      parts.normalized_tokens.add(parts.nfc ? nfc(token.content) : token.content, token);
    }
  }
}

std::string_view content_of(const JsonNode& token) {
  return token.element().is_object() ? token.at("content").string() : token.string();
}

std::optional<int32_t> special_token(const JsonNode& root, std::string_view key, const Vocabulary& vocabulary) {
  const auto node = root.find(key);
  if (!node) return std::nullopt;
  const int32_t id = vocabulary.find(content_of(*node));
  if (id < 0) node->refuse(quote(content_of(*node)) + " is not in the vocabulary", "name a token of tokenizer.json");
  return id;
}

}  // namespace

void read_tokenizer_json(std::string json, const std::string& where, TokenizerParts& parts) {
  dom::parser parser;
  const JsonNode root(parse_document(parser, std::move(json), where), where);
  // How to cut and pad is the recipe's business, so `truncation` and `padding` are not read.
  root.allow({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
              "model"});
  read_model(root.at("model"), parts);
  read_components(root, parts);
  if (const auto added = root.find("added_tokens")) read_added_tokens(*added, parts);
}

void read_special_tokens(const std::filesystem::path& directory, TokenizerParts& parts) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path file = directory / name;
    if (!file_exists(file)) continue;
    dom::parser parser;
    const std::string text = read_text(file, kMaxSpecialTokens, simdjson::SIMDJSON_PADDING, kDamaged);
    const JsonNode root(parse_document(parser, text, file.string()), file.string());
    if (!parts.bos) parts.bos = special_token(root, "bos_token", parts.vocabulary);
    if (!parts.eos) parts.eos = special_token(root, "eos_token", parts.vocabulary);
  }
}

}  // namespace snug
