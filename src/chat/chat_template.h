#pragma once
// Chat templates: a conversation becomes the text that a model is trained on, byte for byte as transformers'
// apply_chat_template makes it, and what loss is taken on is found in it (spans.h). A template is a small program in the
// language Jinja; interpreter.h runs it within bounds. This room knows neither tokenizers nor files of training rows.

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace snug::chat {

struct Syntax;

// Bytes [begin, end) of the rendered text.
struct TextSpan {
  int64_t begin = 0, end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

// What the assistant says in message `message` of the conversation (-1: the template does not tell which).
struct AssistantSpan {
  int64_t begin = 0, end = 0;
  int64_t message = -1;
  friend bool operator==(const AssistantSpan&, const AssistantSpan&) = default;
};

struct Rendered {
  std::string text;
  std::vector<AssistantSpan>
      assistant;  // in order, disjoint; messages with weight 0, loss false or train false are left out
};

struct Conversation {
  Value messages;  // a list of dicts
  Value tools;     // a list of dicts, or undefined or none
  Value extra;     // a dict of further variables (documents, enable_thinking, …), or undefined
  bool add_generation_prompt = false;
};

// bos_token, eos_token and the like, as the tokenizer names them.
using Variables = std::vector<std::pair<std::string, std::string>>;

class ChatTemplate {
 public:
  // `where` names the source in errors. Throws Error with file and line for what is not known.
  static ChatTemplate parse(std::string_view source, std::string where);

  // The text and the spans of every assistant message. Throws Error where the template refuses the conversation, and where
  // the spans cannot be told: nothing is ever trained on by default.
  Rendered render(const Conversation& conversation, const Variables& special_tokens) const;

  // The text alone.
  std::string render_text(const Conversation& conversation, const Variables& special_tokens) const;

  // The time that strftime_now tells, instead of the machine's local time.
  void set_clock(std::function<std::tm()> clock) { clock_ = std::move(clock); }

  const std::string& where() const;

 private:
  explicit ChatTemplate(std::shared_ptr<const Syntax> syntax);

  std::shared_ptr<const Syntax> syntax_;
  std::function<std::tm()> clock_;
};

}  // namespace snug::chat
