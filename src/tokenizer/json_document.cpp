#include "tokenizer/json_document.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace snug {
namespace {

// The byte of the first \\u escape of half a character (a surrogate without its other half); npos: there is none.
size_t find_lone_surrogate(std::string_view json) {
  const auto unit = [&](size_t at) -> unsigned long {
    if (json.substr(at, 2) != "\\u" || at + 6 > json.size()) return 0;
    return std::strtoul(std::string(json.substr(at + 2, 4)).c_str(), nullptr, 16);
  };
  for (size_t at = json.find('\\'); at != std::string_view::npos; at = json.find('\\', at)) {
    const unsigned long first = unit(at);
    if (first < 0xD800 || first > 0xDFFF) {
      at += 2;
      continue;
    }
    const unsigned long second = unit(at + 6);
    if (first > 0xDBFF || second < 0xDC00 || second > 0xDFFF) return at;
    at += 12;
  }
  return std::string_view::npos;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whole numbers beyond 64 bits (the model_max_length of many a tokenizer_config.json) become their first digit: simdjson
// does not read them, and nobody here does.
void shorten_numbers(std::string& json) {
  bool in_string = false;
  for (size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '"') in_string = !in_string;
    if (in_string && json[at] == '\\') ++at;
    if (in_string || at >= json.size() || !is_digit(json[at])) continue;
    size_t end = at;
    while (end < json.size() && is_digit(json[end])) ++end;
    const bool whole = (at == 0 || json[at - 1] != '.') &&
                       (end == json.size() || std::string_view(".eE").find(json[end]) == std::string_view::npos);
    if (whole && end - at >= 19)
      std::fill(json.begin() + static_cast<std::ptrdiff_t>(at) + 1, json.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    at = end - 1;
  }
}

}  // namespace

simdjson::dom::element parse_json(simdjson::dom::parser& parser, std::string json, const std::string& where) {
  const size_t size = json.size();
  json.reserve(size + simdjson::SIMDJSON_PADDING);  // simdjson reads beyond the end
  simdjson::dom::element root;
  auto error = parser.parse(json.data(), size, false).get(root);
  if (error == simdjson::NUMBER_ERROR) {
    shorten_numbers(json);
    error = parser.parse(json.data(), size, false).get(root);
  }
  if (error == simdjson::SUCCESS) return root;
  const size_t lone = error == simdjson::STRING_ERROR ? find_lone_surrogate(json) : std::string_view::npos;
  if (lone != std::string_view::npos) {
    throw Error("is not valid JSON: half a character (" + json.substr(lone, 6) + ") at byte " + std::to_string(lone), where,
                kDamaged);
  }
  throw Error(std::string("is not valid JSON: ") + simdjson::error_message(error), where, kDamaged);
}

}  // namespace snug
