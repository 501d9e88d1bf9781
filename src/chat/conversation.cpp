#include "chat/conversation.h"

#include <fmt/format.h>

namespace snug::chat {
namespace {

Value tag_texts(const Value& value, const Tag& tag) {
  if (value.is_string()) return Value::text(make_tagged(value.text()->bytes(), tag));
  if (value.is(Kind::sequence)) {
    std::vector<Value> items;
    for (const Value& item : value.sequence()->items) items.push_back(tag_texts(item, tag));
    return Value::sequence(value.sequence()->flavor, std::move(items));
  }
  if (!value.is(Kind::dict)) return value;
  Dict entries;
  for (const auto& [key, item] : value.dict()->entries()) {
    entries.set(key.is_string() ? Value::text(make_tagged(key.text()->bytes(), tag)) : key, tag_texts(item, tag));
  }
  return Value::dict(std::move(entries));
}

// The first of the names under which a message carries its reasoning; none if there is none.
const Value* reasoning_of(const Dict& message) {
  for (const std::string_view name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* found = message.find(name);
    if (found != nullptr && !found->is(Kind::none)) return found;
  }
  return nullptr;
}

Value normalize_message(const Dict& message, int32_t number, bool tagged) {
  Dict entries;
  const Value* reasoning = reasoning_of(message);
  const auto value_of = [&](std::string_view name, const Value& value) {
    const bool framing = name == "role" || name == "name";
    return tagged && !framing ? tag_texts(value, {number, -1, -1}) : value;
  };
  if (reasoning != nullptr) entries.set("thinking", value_of("thinking", *reasoning));
  for (const auto& [key, value] : message.entries()) {
    if (!value.is(Kind::none)) entries.set(key, value_of(key.is_string() ? key.view() : std::string_view(), value));
  }
  if (reasoning != nullptr) entries.set("reasoning_content", value_of("reasoning_content", *reasoning));
  return Value::dict(std::move(entries));
}

}  // namespace

std::vector<Value> normalize_messages(const Value& messages, bool tagged) {
  if (!messages.is(Kind::sequence))
    throw Error("the messages of a conversation must be a list", {}, "give messages: [{role, content}, …]");
  const auto& items = messages.sequence()->items;
  if (items.empty()) throw Error("the conversation has no messages", {}, "leave the row out");
  std::vector<Value> result;
  for (const Value& message : items) {
    if (!message.is(Kind::dict)) {
      throw Error(
          fmt::format("message {} must be an object with role and content, not {}", result.size(), type_name(message)));
    }
    result.push_back(normalize_message(*message.dict(), static_cast<int32_t>(result.size()), tagged));
  }
  return result;
}

Dict template_variables(std::vector<Value> messages, const Conversation& conversation, const Variables& special_tokens) {
  Dict variables;
  for (const auto& [name, text] : special_tokens) variables.set(name, Value::text(text));
  variables.set("documents", Value::none());
  if (conversation.extra.is(Kind::dict)) {
    for (const auto& [name, value] : conversation.extra.dict()->entries()) variables.set(name, value);
  } else if (!conversation.extra.is_undefined() && !conversation.extra.is(Kind::none)) {
    throw Error("further variables of a template must be an object");
  }
  variables.set("messages", Value::list(std::move(messages)));
  variables.set("tools", conversation.tools.is_undefined() ? Value::none() : conversation.tools);
  variables.set("add_generation_prompt", Value::boolean(conversation.add_generation_prompt));
  return variables;
}

}  // namespace snug::chat
