#include "data/conversation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/quote.h"

namespace snug {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& mend) { throw Error(what, {}, mend); }

JsonValue* find(JsonValue::Object& members, std::string_view name) {
  const auto found = std::ranges::find(members, name, &JsonMember::name);
  return found == members.end() ? nullptr : &found->value;
}

// The roles that ShareGPT's speakers have; empty for a name that is not known.
std::string_view role_of_speaker(std::string_view speaker) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kRoles = {{{"human", "user"},
                                                                                     {"user", "user"},
                                                                                     {"gpt", "assistant"},
                                                                                     {"assistant", "assistant"},
                                                                                     {"chatgpt", "assistant"},
                                                                                     {"model", "assistant"},
                                                                                     {"bot", "assistant"},
                                                                                     {"system", "system"},
                                                                                     {"tool", "tool"},
                                                                                     {"function", "tool"},
                                                                                     {"function_response", "tool"},
                                                                                     {"observation", "tool"},
                                                                                     {"function_call", "assistant"}}};
  const auto found = std::ranges::find(kRoles, speaker, &std::pair<std::string_view, std::string_view>::first);
  return found == kRoles.end() ? std::string_view() : found->second;
}

// {name, arguments} as the call of a function that chat templates take.
JsonValue tool_call(JsonValue function) {
  if (function.find("name") == nullptr || function.find("arguments") == nullptr)
    refuse(R"(a function call lacks "name" or "arguments")", R"(give {"name": …, "arguments": {…}})");
  return JsonValue(JsonValue::Object{{"type", JsonValue(std::string_view("function"))}, {"function", std::move(function)}});
}

// LLaMA-Factory's speaker function_call: its value is the JSON of one call or of several.
JsonValue tool_calls(std::string_view json, JsonRowParser& parser) {
  JsonValue value = parser.parse_value(json);
  JsonValue::List calls;
  if (JsonValue::List* items = value.list()) {
    for (JsonValue& item : *items) calls.push_back(tool_call(std::move(item)));
  } else {
    calls.push_back(tool_call(std::move(value)));
  }
  return JsonValue(std::move(calls));
}

// Takes the keys that say whether a message is learned out of it; what they say, if anything.
std::optional<bool> take_learned(JsonValue::Object& message, const std::string& name) {
  std::optional<bool> learned;
  for (const std::string_view key : {"weight", "loss", "train"}) {
    const auto found = std::ranges::find(message, key, &JsonMember::name);
    if (found == message.end()) continue;
    const JsonValue value = std::move(found->value);
    message.erase(found);
    if (value.is_null()) continue;
    const double number = value.integer() != nullptr   ? static_cast<double>(*value.integer())
                          : value.number() != nullptr  ? *value.number()
                          : value.boolean() != nullptr ? (*value.boolean() ? 1.0 : 0.0)
                                                       : -1.0;
    if (number != 0.0 && number != 1.0) refuse(name + " has a " + quote(key) + " other than 0 and 1", "give 0 or 1");
    learned = learned.value_or(true) && number == 1.0;
  }
  return learned;
}

// ShareGPT's words become those of chat templates.
void translate(JsonValue::Object& message, const std::string& name, JsonRowParser& parser) {
  JsonValue* from = find(message, "from");
  if (from == nullptr || find(message, "role") != nullptr) return;
  if (from->string() == nullptr) refuse(name + R"( has a "from" that is not a string)", "name the speaker");
  const std::string speaker = *from->string();
  const std::string_view role = role_of_speaker(speaker);
  if (role.empty())
    refuse(name + " is from " + quote(speaker), "snug knows human, gpt, system, tool, function, observation, function_call");
  *from = JsonValue(role);
  std::ranges::find(message, "from", &JsonMember::name)->name = "role";
  JsonValue* value = find(message, "value");
  if (value == nullptr) return;
  if (speaker == "function_call") {
    if (value->string() == nullptr) refuse(name + R"( has a "value" that is not a string)", "give the call as JSON");
    const JsonValue calls = tool_calls(*value->string(), parser);
    *value = JsonValue();
    message.push_back({"tool_calls", calls});
  }
  std::ranges::find(message, "value", &JsonMember::name)->name = "content";
}

void check(const JsonValue::Object& message, const std::string& name) {
  const auto at = [&](std::string_view key) { return std::ranges::find(message, key, &JsonMember::name); };
  const auto role = at("role");
  if (role == message.end())
    refuse(name + R"( has no "role")", R"(give "role" and "content" (or ShareGPT's "from" and "value"))");
  if (role->value.string() == nullptr)
    refuse(name + R"( has a "role" that is not a string)", "give user, assistant, system or tool");
  const auto content = at("content");
  const bool calls = at("tool_calls") != message.end() && !at("tool_calls")->value.is_null();
  const bool there = content != message.end() && !content->value.is_null();
  // Other fields may stand for the content (a template's "thinking"), but a message of a role alone is a mistake.
  if (!there && !calls && message.size() <= (content == message.end() ? 1U : 2U))
    refuse(name + R"( has no "content")", "fill it or remove the message");
  // What a tool has answered may be an object or a number, which templates write as JSON.
  const bool answered = *role->value.string() == "tool" || *role->value.string() == "ipython";
  if (there && !answered && content->value.string() == nullptr && content->value.list() == nullptr)
    refuse(name + R"( has a "content" that is )" + std::string(content->value.type_name()), "give a string");
}

}  // namespace

void add_messages(JsonValue& list, std::string_view column, bool learned, JsonRowParser& parser, Chat& chat) {
  JsonValue::List* items = list.list();
  if (items == nullptr)
    refuse(quote(column) + " is " + std::string(list.type_name()) + ", not a list of messages", "give a list of messages");
  if (chat.messages.list() == nullptr) chat.messages = JsonValue(JsonValue::List{});
  for (JsonValue& item : *items) {
    const std::string name = "message " + std::to_string(chat.learned.size() + 1);
    JsonValue::Object* message = item.object();
    if (message == nullptr)
      refuse(name + " is " + std::string(item.type_name()) + ", not an object", "give {role, content}");
    translate(*message, name, parser);
    const auto said = take_learned(*message, name);
    check(*message, name);
    chat.learned.push_back(learned && said.value_or(true));
    chat.messages.list()->push_back(std::move(item));
  }
}

JsonValue read_tools(JsonValue value, JsonRowParser& parser) {
  if (const std::string* json = value.string()) {
    if (json->find_first_not_of(" \t\r\n") == std::string::npos) return {};
    value = parser.parse_value(std::string(*json));
  }
  if (value.is_null()) return {};
  if (value.list() == nullptr)
    refuse(R"("tools" is )" + std::string(value.type_name()) + ", not a list", "give a list of tools");
  return value;  // an empty one too: templates are told of it, as in transformers
}

void wrap_functions(JsonValue& tools) {
  if (tools.list() == nullptr) return;
  for (JsonValue& tool : *tools.list()) {
    if (tool.find("name") == nullptr || tool.find("function") != nullptr || tool.find("type") != nullptr) continue;
    JsonValue function = std::move(tool);
    tool =
        JsonValue(JsonValue::Object{{"type", JsonValue(std::string_view("function"))}, {"function", std::move(function)}});
  }
}

}  // namespace snug
