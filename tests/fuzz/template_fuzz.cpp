// Fuzzes chat templates: the input is a template, a zero byte and a conversation as JSON (without it, a plain one). Nothing
// but snug::Error may come out, and spans lie within the text.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "chat/chat_template.h"
#include "chat/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string_view plain =
      R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}], "extra": {"x": [1, 2.5, null, {"a": "é"}]}})";
  try {
    const auto parsed = snug::chat::ChatTemplate::parse(std::string(input.substr(0, zero)), "fuzz");
    const auto given = snug::chat::parse_json(zero == std::string_view::npos ? plain : input.substr(zero + 1), "fuzz");
    if (!given.is(snug::chat::Kind::dict)) return 0;
    const auto field = [&](std::string_view name) {
      const auto* found = given.dict()->find(name);
      return found == nullptr ? snug::chat::Value() : *found;
    };
    const auto rendered = parsed.render({field("messages"), field("tools"), field("extra"), false},
                                        {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    int64_t last = 0;
    for (const auto& span : rendered.assistant) {
      if (span.begin < last || span.end <= span.begin || span.end > static_cast<int64_t>(rendered.text.size())) std::abort();
      last = span.end;
    }
  } catch (const snug::Error&) {
  }
  return 0;
}
