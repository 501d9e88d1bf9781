#include "chat/chat_template.h"

#include "chat/conversation.h"
#include "chat/interpreter.h"
#include "chat/parser.h"
#include "chat/spans.h"

namespace snug::chat {
namespace {

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const Syntax> syntax) : syntax_(std::move(syntax)), clock_(local_time) {}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string where) {
  return ChatTemplate(std::make_shared<const Syntax>(parse_template(source, std::move(where))));
}

const std::string& ChatTemplate::where() const { return syntax_->where; }

std::string ChatTemplate::render_text(const Conversation& conversation, const Variables& special_tokens) const {
  const Meter meter;
  const Dict variables = template_variables(normalize_messages(conversation.messages, false), conversation, special_tokens);
  return Interpreter({*syntax_, variables, clock_}).run()->bytes();
}

Rendered ChatTemplate::render(const Conversation& conversation, const Variables& special_tokens) const {
  return SpanFinder(*syntax_, clock_, conversation, special_tokens).render();
}

}  // namespace snug::chat
