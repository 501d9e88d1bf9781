#pragma once
// Golden files of chat templates, and conversations made of them.

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/json.h"

namespace snug::test {

// tests/golden/chat/NAME.
std::filesystem::path golden_path(const std::string& name);
std::string read_file(const std::filesystem::path& path);
chat::Value golden_json(const std::string& name);

// A field of a JSON object; undefined if it is absent.
chat::Value field(const chat::Value& object, std::string_view name);
std::string text_field(const chat::Value& object, std::string_view name);
const std::vector<chat::Value>& items(const chat::Value& list);

// The source of a template by the name it has in golden files: ours below tests/golden/chat, published ones below
// shared/data; none if shared/data is absent.
std::optional<std::string> template_source(const std::string& name);
// With the clock that the golden files were made by: 2024-07-26 12:34:56.
chat::ChatTemplate parse_with_clock(const std::string& source, const std::string& where);

chat::Conversation conversation_of(const chat::Value& row, bool add_generation_prompt);
chat::Variables variables_of(const chat::Value& object);

// The sum that the golden files keep of a text.
std::string fnv(std::string_view bytes);

// What the Error says; empty if `action` throws none.
template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace snug::test
