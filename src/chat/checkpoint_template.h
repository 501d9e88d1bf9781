#pragma once
// Which template a checkpoint has, and its special tokens, from the texts of the files beside it, as transformers chooses.

#include <optional>
#include <string>

#include "chat/chat_template.h"

namespace snug::chat {

// Texts of the files that are there.
struct CheckpointTexts {
  std::optional<std::string> tokenizer_config;    // tokenizer_config.json
  std::optional<std::string> special_tokens_map;  // special_tokens_map.json
  std::optional<std::string> template_jinja;      // chat_template.jinja
  std::optional<std::string> template_json;       // chat_template.json
};

struct TemplateSource {
  std::string source;
  std::string where;  // for errors: the file, and the template's name if it has one
};

// chat_template.jinja before chat_template.json before the field of tokenizer_config.json; of several named ones "tool_use"
// if there are tools, else "default". None if there is none; throws Error for a broken file or for names without a default.
std::optional<TemplateSource> choose_template(const CheckpointTexts& texts, const std::string& directory, bool with_tools);

// bos_token, eos_token and the other special tokens by name.
Variables read_special_tokens(const CheckpointTexts& texts, const std::string& directory);

}  // namespace snug::chat
