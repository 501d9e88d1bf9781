#include "formats/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "base/error.h"
#include "formats/file.h"
#include "formats/sentencepiece_model.h"
#include "model/json.h"

namespace snug {

namespace fs = std::filesystem;
namespace dom = simdjson::dom;

namespace {

constexpr int64_t kLargestFile = int64_t{256} << 20;  // bytes
constexpr std::string_view kSpace = "\xe2\x96\x81";   // "▁"

// Of a token, as SentencePiece numbers them.
enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

// `json`: an element or an object.
template <class Json>
std::optional<dom::element> field(const Json& json, std::string_view name) {
  if constexpr (std::is_same_v<Json, dom::element>)
    if (!json.is_object()) return std::nullopt;
  const auto found = json.at_key(name);
  if (found.error() != simdjson::SUCCESS || found.value_unsafe().is_null()) return std::nullopt;
  return found.value_unsafe();
}

template <class Json>
std::string text_of(const Json& json, std::string_view name) {
  const auto value = field(json, name);
  return value && value->is_string() ? std::string(std::string_view(*value)) : std::string();
}

template <class Json>
bool flag_of(const Json& json, std::string_view name, bool otherwise = false) {
  const auto value = field(json, name);
  return value && value->is_bool() ? bool(*value) : otherwise;
}

template <class Json>
std::vector<dom::element> items_of(const Json& json, std::string_view name) {
  const auto value = field(json, name);
  std::vector<dom::element> items;
  if (value && value->is_array())
    for (const dom::element item : dom::array(*value)) items.push_back(item);
  return items;
}

// A part, or the parts of a Sequence.
std::vector<dom::element> parts_of(const dom::object& root, std::string_view name, std::string_view list) {
  const auto part = field(root, name);
  if (!part) return {};
  return text_of(*part, "type") == "Sequence" ? items_of(*part, list) : std::vector{*part};
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

// Some models do not mark all of their control tokens.
bool looks_special(std::string_view text) {
  return text == "<pad>" || text == "<mask>" || text == "<2mass>" || text == "[@BOS@]" ||
         (text.starts_with("<|") && text.ends_with("|>")) || (text.starts_with("<unused") && text.ends_with(">"));
}

bool is_byte(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f'); };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && hex(text[3]) && hex(text[4]);
}

// The fields of tokenizer_config.json that are read here. Others hold whole numbers beyond 64 bits, which stop simdjson.
std::string settings_of(const fs::path& path) {
  using Json = nlohmann::ordered_json;
  try {
    const Json all = Json::parse(read_text_file(path, kLargestFile));
    Json used = Json::object();
    if (!all.is_object()) throw Error("is not a JSON object", path.string());
    for (const auto& [key, value] : all.items())
      if (key.ends_with("_token") || key == "chat_template") used[key] = value;
    return used.dump();
  } catch (const Json::exception&) {
    throw Error("is not valid JSON", path.string());
  }
}

struct Expression {
  std::string_view name, text;
};

// Expressions of tokenizer.json files that llama.cpp has under a name.
constexpr auto kExpressions = std::to_array<Expression>({
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"tekken",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"gpt-4o",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
});

class TokenizerKeys {
 public:
  TokenizerKeys(const fs::path& directory, const GgufFamily& family) : directory_(directory), family_(family) {}

  GgufKeys make(const std::string& pretokenizer) {
    const fs::path pieces = directory_ / "tokenizer.model", json = directory_ / "tokenizer.json";
    std::optional<std::string> text, settings;
    std::optional<JsonDocument> document, config;
    if (is_there(json)) {
      text = read_text_file(json, kLargestFile);
      document.emplace(*text, json.string());
      tokenizer_ = document->root_object();
    }
    if (is_there(directory_ / "tokenizer_config.json")) {
      settings = settings_of(directory_ / "tokenizer_config.json");
      config.emplace(*settings, (directory_ / "tokenizer_config.json").string());
      config_ = config->root_object();
    }
    if (!tokenizer_ && !is_there(pieces)) {
      set("tokenizer.ggml.model", std::string("none"));
      return std::move(keys_);
    }
    if (is_sentencepiece_json()) {
      sentencepiece_from_json();
    } else if (tokenizer_) {
      byte_level(pretokenizer);
    }
    if (is_there(pieces) && (!tokenizer_ || is_sentencepiece_json())) pieces_from_model(pieces);
    added_tokens();
    write_tokens();
    special_tokens();
    chat_template();
    return std::move(keys_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& mend = {}) const {
    throw Error(what, (directory_ / "tokenizer.json").string(), mend);
  }
  template <class Value>
  void set(const std::string& key, Value value) {
    keys_.emplace_back(key, std::move(value));
  }

  bool is_sentencepiece_json() const {
    const auto model = tokenizer_ ? field(*tokenizer_, "model") : std::nullopt;
    return model && flag_of(*model, "byte_fallback");
  }

  void put(int64_t id, const std::string& text, int32_t type, float score) {
    if (id < 0 || id >= family_.vocab_size)
      refuse(fmt::format("token {} is beyond the model's vocabulary of {}", id, family_.vocab_size),
             "use the tokenizer that belongs to the model");
    tokens_[static_cast<size_t>(id)] = text;
    types_[static_cast<size_t>(id)] = type;
    scores_[static_cast<size_t>(id)] = score;
  }

  // Ids that have no token: rows of the embedding that are there for the sake of a round number.
  void clear_tokens(float score) {
    const auto count = static_cast<size_t>(family_.vocab_size);
    tokens_.resize(count);
    for (size_t id = 0; id < count; ++id) tokens_[id] = fmt::format("[PAD{}]", id);
    types_.assign(count, kUnused);
    scores_.assign(count, score);
  }

  dom::element bpe_model() const {
    const auto model = field(*tokenizer_, "model");
    const std::string type = model ? text_of(*model, "type") : "";
    if (!model || (type != "BPE" && !(type.empty() && field(*model, "merges"))))
      refuse(fmt::format("a tokenizer of type '{}' cannot be exported", type), "supported: BPE");
    return *model;
  }

  void vocabulary(const dom::element& model, int32_t (*type_of)(std::string_view), float score) {
    clear_tokens(score);
    const auto vocabulary = field(model, "vocab");
    if (!vocabulary || !vocabulary->is_object()) refuse("has no vocabulary");
    for (const auto [token, id] : dom::object(*vocabulary))
      put(json_integer("an id", id, 0, family_.vocab_size - 1, (directory_ / "tokenizer.json").string()), std::string(token),
          type_of(token), score);
    for (size_t id = 0; id < tokens_.size(); ++id)
      if (types_[id] != kUnused) ids_.emplace(tokens_[id], id);
  }

  void require_token(const std::string& token) const {
    if (!ids_.contains(token))
      refuse(fmt::format("a merge speaks of '{}', which is no token", token), "the file is damaged");
  }

  // A space within a token cannot stand in "left right"; byte-level vocabularies have none.
  std::vector<std::pair<std::string, std::string>> merges_of(const dom::element& model) const {
    std::vector<std::pair<std::string, std::string>> merges;
    for (const dom::element& merge : items_of(model, "merges")) {
      if (merge.is_string()) {
        const std::string_view pair = merge;
        const size_t space = pair.find(' ', 1);
        if (space == std::string_view::npos) refuse("a merge is not a pair");
        merges.emplace_back(pair.substr(0, space), pair.substr(space + 1));
        continue;
      }
      std::vector<std::string> pair;
      if (merge.is_array())
        for (const dom::element part : dom::array(merge))
          if (part.is_string()) pair.emplace_back(std::string_view(part));
      if (pair.size() != 2) refuse("a merge is not a pair");
      merges.emplace_back(pair[0], pair[1]);
    }
    for (const auto& [left, right] : merges) {
      require_token(left);
      require_token(right);
      require_token(left + right);
    }
    return merges;
  }

  // ---- Byte-level BPE

  void byte_level(const std::string& pretokenizer) {
    const dom::element model = bpe_model();
    vocabulary(
        model, [](std::string_view) -> int32_t { return kNormal; }, 0.0F);
    std::vector<std::string> merges;
    for (const auto& [left, right] : merges_of(model))
      merges.push_back(replace_all(left, " ", "\xc4\xa0") + " " + replace_all(right, " ", "\xc4\xa0"));
    set("tokenizer.ggml.model", std::string("gpt2"));
    set("tokenizer.ggml.pre", pretokenizer.empty() ? recognize_splitting() : pretokenizer);
    if (!merges.empty()) set("tokenizer.ggml.merges", merges);
    with_scores_ = false;
  }

  std::string recognize_splitting() const {
    const auto parts = parts_of(*tokenizer_, "pre_tokenizer", "pretokenizers");
    const auto is = [&](size_t i, std::string_view type) { return text_of(parts[i], "type") == type; };
    const auto plain_bytes = [&](size_t i) { return is(i, "ByteLevel") && !flag_of(parts[i], "add_prefix_space"); };
    const auto splits_itself = [&](size_t i) { return flag_of(parts[i], "use_regex", true); };
    if (parts.size() == 1 && plain_bytes(0) && splits_itself(0)) return "gpt-2";
    if (parts.size() == 2 && is(0, "Digits") && flag_of(parts[0], "individual_digits") && plain_bytes(1) && splits_itself(1))
      return "smollm";
    if (parts.size() == 2 && is(0, "Split") && plain_bytes(1) && !splits_itself(1)) {
      const auto pattern = field(parts[0], "pattern");
      const std::string text = pattern ? text_of(*pattern, "Regex") : "";
      for (const Expression& known : kExpressions)
        if (text == known.text && text_of(parts[0], "behavior") == "Isolated") return std::string(known.name);
    }
    refuse("llama.cpp may not know how this tokenizer splits text",
           "name its way with --pretokenizer, as tokenizer.ggml.pre has it");
  }

  // ---- SentencePiece

  void sentencepiece_from_json() {
    const dom::element model = bpe_model();
    vocabulary(
        model, [](std::string_view text) -> int32_t { return is_byte(text) ? kByte : kNormal; }, kNoMerge);
    // llama.cpp merges the pair whose token has the highest score: the earlier its first merge, the higher.
    float rank = 0.0F;
    for (const auto& [left, right] : merges_of(model)) {
      float& score = scores_[ids_.at(left + right)];
      if (score == kNoMerge) score = rank;
      rank -= 1.0F;
    }
    const std::string unknown = text_of(model, "unk_token");
    if (const auto id = ids_.find(unknown); id != ids_.end()) types_[id->second] = kUnknown;
    sentencepiece_keys(adds_prefix());
  }

  bool adds_prefix() const {
    for (const dom::element& part : parts_of(*tokenizer_, "normalizer", "normalizers"))
      if (text_of(part, "type") == "Prepend") return true;
    for (const dom::element& part : parts_of(*tokenizer_, "pre_tokenizer", "pretokenizers"))
      if (text_of(part, "type") == "Metaspace")
        return field(part, "prepend_scheme") ? text_of(part, "prepend_scheme") != "never"
                                             : flag_of(part, "add_prefix_space", true);
    return false;
  }

  void sentencepiece_keys(bool prefix) {
    set("tokenizer.ggml.model", std::string("llama"));
    set("tokenizer.ggml.pre", std::string("default"));
    set("tokenizer.ggml.add_space_prefix", prefix);
    with_scores_ = true;
  }

  void pieces_from_model(const fs::path& path) {
    const SentencePieceModel model = parse_sentencepiece_model(read_text_file(path, kLargestFile), path.string());
    if (static_cast<int64_t>(model.pieces.size()) > family_.vocab_size)
      throw Error(fmt::format("has {} pieces, the model {} tokens", model.pieces.size(), family_.vocab_size), path.string());
    if (!tokenizer_) sentencepiece_keys(model.add_dummy_prefix);
    clear_tokens(-10000.0F);
    for (size_t id = 0; id < model.pieces.size(); ++id)
      put(static_cast<int64_t>(id), model.pieces[id].text, model.pieces[id].type, model.pieces[id].score);
  }

  // ---- Both

  void added_tokens() {
    if (!tokenizer_) return;
    for (const dom::element& token : items_of(*tokenizer_, "added_tokens")) {
      const auto id = field(token, "id");
      const std::string text = text_of(token, "content");
      if (!id || !id->is_int64()) refuse("an added token has no id");
      const bool control = flag_of(token, "special") || looks_special(text);
      const auto at = int64_t(*id);
      const bool unknown = at >= 0 && at < family_.vocab_size && types_[static_cast<size_t>(at)] == kUnknown;
      const bool byte = at >= 0 && at < family_.vocab_size && types_[static_cast<size_t>(at)] == kByte;
      if (byte) continue;
      // llama.cpp looks for these tokens in the text itself, where spaces are spaces.
      put(at, control ? text : replace_all(text, kSpace, " "),
          unknown   ? kUnknown
          : control ? kControl
                    : kUserDefined,
          -1000.0F);
      added_.emplace(text, static_cast<uint32_t>(at));
    }
  }

  void write_tokens() {
    set("tokenizer.ggml.tokens", tokens_);
    if (with_scores_) set("tokenizer.ggml.scores", scores_);
    set("tokenizer.ggml.token_type", types_);
  }

  // The text of "bos_token" and the like in tokenizer_config.json: a text, or an object with its content.
  std::string special_text(const std::string& role) const {
    if (!config_) return {};
    const std::string plain = text_of(*config_, role + "_token");
    const auto object = field(*config_, role + "_token");
    return plain.empty() && object ? text_of(*object, "content") : plain;
  }

  void special_tokens() {
    std::map<std::string, bool> adds;
    std::map<std::string, std::string> texts;
    for (const char* role : {"bos", "eos", "unk", "sep", "pad"}) texts[role] = special_text(role);
    if (tokenizer_) read_template(adds, texts);
    for (const char* role : {"bos", "eos", "sep"})
      if (config_ && field(*config_, fmt::format("add_{}_token", role)))
        adds.emplace(role, flag_of(*config_, fmt::format("add_{}_token", role)));
    const std::map<std::string, const std::vector<int32_t>*> in_config = {
        {"bos", &family_.bos}, {"eos", &family_.eos}, {"pad", &family_.pad}};
    const std::map<std::string, std::string> names = {
        {"bos", "bos"}, {"eos", "eos"}, {"unk", "unknown"}, {"sep", "seperator"}, {"pad", "padding"}};
    for (const auto& [role, name] : names) {
      const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
      if (const auto found = added_.find(texts[role]); found != added_.end()) {
        set(key, found->second);
      } else if (const auto config = in_config.find(role); config != in_config.end() && !config->second->empty()) {
        set(key, static_cast<uint32_t>(config->second->front()));
      }
    }
    for (const auto& [role, add] : adds) set(fmt::format("tokenizer.ggml.add_{}_token", role), add);
  }

  // Whether texts begin and end with a special token is said by the post-processor.
  void read_template(std::map<std::string, bool>& adds, std::map<std::string, std::string>& texts) const {
    for (const dom::element& part : parts_of(*tokenizer_, "post_processor", "processors")) {
      if (text_of(part, "type") == "ByteLevel") {
        adds.emplace("bos", false);
        adds.emplace("eos", false);
      }
      const std::vector<dom::element> single = items_of(part, "single");
      if (text_of(part, "type") != "TemplateProcessing" || single.size() < 2) continue;
      const auto special = [](const dom::element& item) {
        const auto token = field(item, "SpecialToken");
        return token ? text_of(*token, "id") : std::string();
      };
      if (const std::string first = special(single.front()); !first.empty()) {
        if (texts["bos"].empty()) texts["bos"] = first;
        adds["bos"] = first == texts["bos"];
      }
      if (const std::string last = special(single.back()); !last.empty()) {
        if (texts["eos"].empty()) texts["eos"] = last;
        adds["eos"] = last == texts["eos"];
      }
    }
  }

  void chat_template() {
    std::string text;
    if (config_) {
      text = text_of(*config_, "chat_template");
      for (const dom::element& named : items_of(*config_, "chat_template"))
        if (text.empty() && text_of(named, "name") == "default") text = text_of(named, "template");
    }
    if (text.empty() && is_there(directory_ / "chat_template.jinja"))
      text = read_text_file(directory_ / "chat_template.jinja", kLargestFile);
    if (!text.empty()) set("tokenizer.chat_template", text);
  }

  static constexpr float kNoMerge = -1e6F;

  const fs::path& directory_;
  const GgufFamily& family_;
  std::optional<dom::object> tokenizer_, config_;
  GgufKeys keys_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::vector<float> scores_;
  std::unordered_map<std::string, size_t> ids_;  // of the vocabulary
  bool with_scores_ = false;
  std::map<std::string, uint32_t> added_;
};

}  // namespace

GgufKeys gguf_tokenizer_keys(const fs::path& directory, const GgufFamily& family, const std::string& pretokenizer) {
  return TokenizerKeys(directory, family).make(pretokenizer);
}

}  // namespace snug
