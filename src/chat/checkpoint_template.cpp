#include "chat/checkpoint_template.h"

#include <algorithm>

#include "chat/json.h"

namespace snug::chat {
namespace {

// A field of a JSON object; null if it is absent or null.
const Value* field_of(const Value& object, std::string_view name) {
  const Value* found = object.is(Kind::dict) ? object.dict()->find(name) : nullptr;
  return found == nullptr || found->is(Kind::none) ? nullptr : found;
}

const std::string& text_of(const Value* value, const std::string& where) {
  if (value == nullptr || !value->is_string())
    throw Error("a chat template must be text", where, "use the file as published");
  return value->text()->bytes();
}

// JSON in which whole numbers of more than 18 digits have become real ones: tokenizers write model_max_length as 10^30.
std::string with_real_numbers(std::string_view json) {
  std::string out;
  bool quoted = false;
  for (size_t i = 0; i < json.size();) {
    const auto is_digit = [&](size_t at) { return at < json.size() && json[at] >= '0' && json[at] <= '9'; };
    size_t end = i + 1;
    if (quoted && json[i] == '\\') end = std::min(i + 2, json.size());
    if (json[i] == '"') quoted = !quoted;
    while (!quoted && is_digit(i) && is_digit(end)) ++end;
    out += json.substr(i, end - i);
    const bool fraction =
        (i > 0 && json[i - 1] == '.') || (end < json.size() && (json[end] == '.' || (json[end] | 0x20) == 'e'));
    if (end - i > 18 && !fraction) out += ".0";
    i = end;
  }
  return out;
}

std::optional<TemplateSource> choose_named(const Value& list, const std::string& where, bool with_tools) {
  const auto named = [&](std::string_view wanted) -> std::optional<TemplateSource> {
    for (const Value& entry : list.sequence()->items) {
      const Value* name = field_of(entry, "name");
      if (name == nullptr || !name->is_string() || name->view() != wanted) continue;
      const std::string place = where + " \"" + std::string(wanted) + "\"";
      return TemplateSource{text_of(field_of(entry, "template"), place), place};
    }
    return std::nullopt;
  };
  if (with_tools) {
    if (auto found = named("tool_use")) return found;
  }
  if (auto found = named("default")) return found;
  throw Error("there are several chat templates and none is the default", where, "name one of them \"default\"");
}

std::optional<TemplateSource> from_json(const std::string& json, const std::string& file, bool with_tools) {
  const Value root = parse_json(with_real_numbers(json), file);
  const Value* found = field_of(root, "chat_template");
  if (found == nullptr) return std::nullopt;
  const std::string where = file + ": chat_template";
  if (found->is(Kind::sequence)) return choose_named(*found, where, with_tools);
  return TemplateSource{text_of(found, where), where};
}

}  // namespace

std::optional<TemplateSource> choose_template(const CheckpointTexts& texts, const std::string& directory, bool with_tools) {
  if (texts.template_jinja) return TemplateSource{*texts.template_jinja, directory + "/chat_template.jinja"};
  if (texts.template_json) {
    if (auto found = from_json(*texts.template_json, directory + "/chat_template.json", with_tools)) return found;
  }
  if (!texts.tokenizer_config) return std::nullopt;
  return from_json(*texts.tokenizer_config, directory + "/tokenizer_config.json", with_tools);
}

Variables read_special_tokens(const CheckpointTexts& texts, const std::string& directory) {
  Variables tokens;
  const auto read = [&](const std::optional<std::string>& text, const char* file) {
    if (!text) return;
    const Value root = parse_json(with_real_numbers(*text), directory + "/" + file);
    for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
      const Value* token = field_of(root, name);
      if (token != nullptr && token->is(Kind::dict)) token = field_of(*token, "content");
      if (token == nullptr || !token->is_string()) continue;
      const bool known = std::ranges::any_of(tokens, [&](const auto& entry) { return entry.first == name; });
      if (!known) tokens.emplace_back(name, token->text()->bytes());
    }
  };
  read(texts.tokenizer_config, "tokenizer_config.json");
  read(texts.special_tokens_map, "special_tokens_map.json");
  return tokens;
}

}  // namespace snug::chat
