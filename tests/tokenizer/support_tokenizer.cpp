#include <array>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/support.h"

namespace snug::test {
namespace {

std::string byte_vocabulary() {
  std::string text = R"({"<s>":0,"</s>":1)";
  for (int byte = 0; byte < 256; ++byte) {
    std::string character;
    kByteAlphabet.append(character, static_cast<unsigned char>(byte));
    text += ",\"";
    if (character == "\"" || character == "\\") text += '\\';
    text.append(character).append("\":").append(std::to_string(byte + 2));
  }
  text += '}';
  return text;
}

}  // namespace

std::string byte_tokenizer_json(const std::string& component, const std::string& value) {
  std::string model = R"({"type":"BPE","vocab":)";
  model.append(byte_vocabulary()).append(R"(,"merges":[]})");
  std::array<std::pair<std::string, std::string>, 7> parts = {{
      {"added_tokens", R"([{"id":0,"content":"<s>","special":true},{"id":1,"content":"</s>","special":true}])"},
      {"normalizer", "null"},
      {"pre_tokenizer", R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})"},
      {"post_processor", "null"},
      {"decoder", R"({"type":"ByteLevel"})"},
      {"version", R"("1.0")"},
      {"model", model},
  }};
  std::string text = "{";
  for (const auto& [name, standard] : parts) {
    if (text.size() > 1) text += ',';
    text.append("\"").append(name).append("\":").append(name == component ? value : standard);
  }
  bool known = component.empty();
  for (const auto& part : parts) known = known || part.first == component;
  if (!known) text.append(",\"").append(component).append("\":").append(value);
  text += '}';
  return text;
}

}  // namespace snug::test
