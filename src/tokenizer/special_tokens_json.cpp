// The special tokens by name ("eos_token"), from the files beside tokenizer.json.

#include <array>
#include <utility>

#include "base/file.h"
#include "tokenizer/json_document.h"
#include "tokenizer/json_node.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {
namespace {

constexpr int64_t kMaxSpecialTokens = int64_t{64} << 20;  // bytes
constexpr std::array<const char*, 7> kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                               "pad_token", "cls_token", "mask_token"};

// A string, or the object of an added token.
std::string content_of(const JsonNode& token) {
  return std::string(token.element().is_object() ? token.at("content").string() : token.string());
}

void read_names(const JsonNode& root, TokenizerParts& parts) {
  for (const std::string name : kNames) {
    const auto node = root.find(name);
    if (!node || parts.special_tokens.contains(name)) continue;
    const std::string content = content_of(*node);
    const int32_t id = parts.find(content);
    if (id >= 0) {
      parts.special_ids.emplace(name, id);
    } else if (name == "bos_token" || name == "eos_token") {
      node->refuse(quote(content) + " is not in the vocabulary", "name a token of tokenizer.json");
    }
    parts.special_tokens.emplace(name, content);
  }
}

}  // namespace

void read_special_tokens(const std::filesystem::path& directory, TokenizerParts& parts) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path file = directory / name;
    if (!file_exists(file)) continue;
    simdjson::dom::parser parser;
    std::string text = read_text(file, kMaxSpecialTokens, simdjson::SIMDJSON_PADDING, kDamaged);
    read_names(JsonNode(parse_json(parser, std::move(text), file.string()), file.string()), parts);
  }
}

}  // namespace snug
