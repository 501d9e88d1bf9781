#include "report/recipe_schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "recipe/foreign_keys.h"
#include "recipe/key_values.h"

namespace snug {

namespace {

using Json = nlohmann::ordered_json;

// A word as YAML reads it: true and 4 are no texts.
Json yaml_scalar(const std::string& word) {
  const Json read = Json::parse(word, nullptr, /*allow_exceptions=*/false);
  return read.is_boolean() || read.is_number() ? read : Json(word);
}

Json words_json(const std::vector<std::string>& words) {
  Json list = Json::array();
  for (const std::string& word : words) list.push_back(yaml_scalar(word));
  return {{"enum", list}};
}

// A bound that is a whole number is written as one.
Json bound(double value) {
  return value == static_cast<double>(static_cast<int64_t>(value)) ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json numbers_json(const char* type, const NumberRange& range) {
  Json json{{"type", type}};
  if (range.least) json[range.above ? "exclusiveMinimum" : "minimum"] = bound(*range.least);
  if (range.most) json[range.below ? "exclusiveMaximum" : "maximum"] = bound(*range.most);
  return json;
}

bool takes(const Key& key, const std::string& value) {
  Recipe unused;
  try {
    key.set(unused, KeyValues(&value, 1));
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Taken, and not offered.
Json pattern_json(const std::string& pattern) { return {{"type", "string"}, {"pattern", "^" + pattern + "$"}}; }

std::string one_of(const auto& words) { return fmt::format("({})", fmt::join(words, "|")); }

std::string list_of(const std::string& item) { return fmt::format("{0}( *, *{0})*", item); }

constexpr const char* kNumber = "[-+]?[0-9.]+([eE][-+]?[0-9]+)?";

Json array_of(const Json& items, int least = 0) {
  Json json{{"type", "array"}, {"items", items}};
  if (least > 0) json["minItems"] = least;
  return json;
}

// A list as a YAML list, as one value, or as one text with commas.
void add_lists(const Key& key, const KeyGrammar& grammar, Json& any) {
  const bool numbers = takes(key, "0") && !takes(key, "a");
  if (numbers) {
    const Json number{{"type", "integer"}, {"minimum", 0}};
    any.push_back(number);
    any.push_back(pattern_json(list_of("[0-9]+")));
    any.push_back(array_of(number));
  } else if (grammar.open) {
    any.push_back({{"type", "string"}});
    any.push_back(array_of({{"type", Json::array({"string", "integer"})}}, key.type == KeyType::text ? 1 : 0));
  } else {
    std::vector<std::string> words = grammar.words;
    words.insert(words.end(), key.words.begin(), key.words.end());
    any.push_back(pattern_json(list_of(one_of(words))));
    any.push_back(array_of({{"anyOf", Json::array({words_json(grammar.words), pattern_json(one_of(words))})}}));
  }
}

// A mapping, or one text with commas; transformers writes it in braces too.
void add_maps(const Key& key, Json& any) {
  const bool closed = !key.words.empty();
  const bool fractions = takes(key, (closed ? std::string(key.words.front()) : "a") + "=0.5");
  Json map{{"type", "object"}, {"additionalProperties", {{"type", fractions ? "number" : "integer"}}}};
  if (closed) map["propertyNames"] = {{"enum", key.words}};
  any.push_back(map);
  const std::string name = closed ? one_of(key.words) : "[^=, ]+";
  any.push_back(pattern_json(list_of(fmt::format("{} *= *{}", name, fractions ? kNumber : "[0-9]+"))));
  if (closed) any.push_back(pattern_json("\\{.*\\}"));
}

// Where a share below 1 is taken beside whole numbers, the row's setter says so.
void add_numbers(const Key& key, const NumberRange& range, Json& any) {
  any.push_back(numbers_json(key.type == KeyType::integer ? "integer" : "number", range));
  if (key.type == KeyType::integer && takes(key, "0.5"))
    any.push_back(numbers_json("number", {.least = 0, .most = 1, .below = true}));
}

// Each way to write a value.
Json ways_to_write(const Key& key) {
  const KeyGrammar grammar = grammar_of(key);
  Json any = Json::array();
  const bool yes_or_no = key.type == KeyType::boolean, map = key.type == KeyType::map, lists = takes_list(key);
  if (yes_or_no) any.push_back({{"type", "boolean"}});
  std::vector<std::string> words = grammar.words;
  if (yes_or_no) std::erase_if(words, [](const std::string& word) { return word == "true" || word == "false"; });
  if (!words.empty()) any.push_back(words_json(words));
  if (grammar.numbers) add_numbers(key, *grammar.numbers, any);
  if (map) add_maps(key, any);
  if (lists) add_lists(key, grammar, any);
  if (key.type == KeyType::size) {
    any.push_back(pattern_json("[0-9]*\\.?[0-9]+ ?([kKmMgGtT][iI]?)?[bB]"));
  } else if (!grammar.pair.empty()) {
    any.push_back(pattern_json(list_of(grammar.pair + "=" + kNumber)));
  } else if (grammar.open && !lists && !map) {
    any.push_back({{"type", "string"}});
  }
  if (!key.words.empty() && !lists && !map) any.push_back(pattern_json(one_of(key.words)));
  if (key.type != KeyType::choice && !yes_or_no) any.push_back({{"type", "null"}});
  return any;
}

Json key_json(const Key& key) {
  Json json{{"description",
             std::string(key.help) + (key.aliases.empty() ? "" : fmt::format(" Also: {}.", fmt::join(key.aliases, ", ")))}};
  if (const std::string value = key.default_text(); !value.empty()) json["default"] = yaml_scalar(value);
  Json any = ways_to_write(key);
  if (any.size() == 1) {
    json.update(any.front());
  } else {
    json["anyOf"] = any;
  }
  return json;
}

// A line for each member, so that a change of the table is a change of a line.
std::string lines_of(const Json& object) {
  std::string text = "{";
  for (const auto& [name, value] : object.items())
    text += fmt::format("{}\n    {}: {}", text.size() > 1 ? "," : "", Json(name).dump(), value.dump());
  return text + "\n  }";
}

}  // namespace

std::string recipe_schema() {
  Json keys = Json::object(), others = Json::object();
  for (const Key& key : recipe_keys()) {
    keys[std::string(key.name)] = key_json(key);
    if (!key.aliases.empty()) others["^" + one_of(key.aliases) + "$"] = {{"$ref", fmt::format("#/properties/{}", key.name)}};
  }
  others["^" + one_of(harmless_keys()) + "$"] = {{"description", "Another trainer's; it has no effect in snug."}};
  constexpr std::string_view kBegin = R"({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "A recipe of snug",
  "description": "What snug train, plan and fit read, as YAML (docs/keys.md).",
  "type": "object",
  "additionalProperties": false,
)";
  return fmt::format("{}  \"properties\": {},\n  \"patternProperties\": {}\n}}\n", kBegin, lines_of(keys), lines_of(others));
}

}  // namespace snug
