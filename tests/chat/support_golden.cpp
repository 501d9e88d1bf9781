#include "chat/support_golden.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "chat/checkpoint_template.h"

namespace snug::test {

using chat::Value;

std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(SNUG_SOURCE_DIR) / "tests/golden/chat" / name;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot be read", path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Value golden_json(const std::string& name) { return chat::parse_json(read_file(golden_path(name)), name); }

Value field(const Value& object, std::string_view name) {
  const Value* found = object.dict()->find(name);
  return found == nullptr ? Value() : *found;
}

std::string text_field(const Value& object, std::string_view name) { return field(object, name).text()->bytes(); }

const std::vector<Value>& items(const Value& list) { return list.sequence()->items; }

std::optional<std::string> template_source(const std::string& name) {
  if (name.starts_with("templates/")) return read_file(golden_path(name));
  const char* set = std::getenv("SNUG_SHARED");
  const std::filesystem::path shared = set != nullptr ? set : std::filesystem::path(SNUG_SOURCE_DIR) / "../shared";
  if (!std::filesystem::exists(shared / "data/tokenizers")) return std::nullopt;
  const std::string text = read_file(shared / name);
  if (!name.ends_with(".json")) return text;
  chat::CheckpointTexts texts;
  texts.tokenizer_config = text;
  return chat::choose_template(texts, name, false)->source;
}

chat::ChatTemplate parse_with_clock(const std::string& source, const std::string& where) {
  chat::ChatTemplate parsed = chat::ChatTemplate::parse(source, where);
  parsed.set_clock([] {
    std::tm time{};
    time.tm_year = 124;
    time.tm_mon = 6;
    time.tm_mday = 26;
    time.tm_hour = 12;
    time.tm_min = 34;
    time.tm_sec = 56;
    time.tm_wday = 5;
    time.tm_yday = 207;
    return time;
  });
  return parsed;
}

chat::Conversation conversation_of(const Value& row, bool add_generation_prompt) {
  return {field(row, "messages"), field(row, "tools"), field(row, "extra"), add_generation_prompt};
}

chat::Variables variables_of(const Value& object) {
  chat::Variables variables;
  for (const auto& [name, value] : object.dict()->entries()) variables.emplace_back(name.view(), value.view());
  return variables;
}

std::string fnv(std::string_view bytes) {
  uint64_t sum = 0xCBF29CE484222325U;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  return fmt::format("{:016x}", sum);
}

}  // namespace snug::test
