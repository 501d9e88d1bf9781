#pragma once
// The text side of a checkpoint: its tokenizer and its chat template. Prompts and conversations become tokens.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "chat/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace snug {

class TextSide {
 public:
  // Throws Error naming the file. The template may be absent: it is looked for as
  // chat/checkpoint_template.h says.
  static TextSide load(const std::filesystem::path& model);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  bool can_chat() const { return template_.has_value(); }

  // A bare text, with the special tokens that the tokenizer puts around it; never empty if there is a token of beginning.
  std::vector<int32_t> prompt(const std::string& text) const;
  // A conversation up to where the assistant's answer begins. Throws Error where there is no template, or it refuses.
  std::vector<int32_t> chat(const chat::Value& messages) const;

 private:
  TextSide(Tokenizer tokenizer, std::filesystem::path model) : tokenizer_(std::move(tokenizer)), model_(std::move(model)) {}

  Tokenizer tokenizer_;
  std::filesystem::path model_;
  std::optional<chat::ChatTemplate> template_;
  chat::Variables variables_;
};

// [{"role": "user", "content": text}]
chat::Value user_message(const std::string& text);

}  // namespace snug
