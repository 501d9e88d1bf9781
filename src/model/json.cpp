#include "model/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace snug {

namespace dom = simdjson::dom;

JsonDocument::JsonDocument(std::string_view text, std::string where) : where_(std::move(where)) {
  if (const auto error = parser_.parse(text.data(), text.size(), true).get(root_); error != simdjson::SUCCESS) {
    throw Error(fmt::format("not valid JSON: {}", simdjson::error_message(error)), where_);
  }
}

dom::object JsonDocument::root_object() const {
  dom::object object;
  if (root_.get(object) != simdjson::SUCCESS) throw Error("the JSON is not an object", where_);
  refuse_duplicate_keys(object, where_);
  return object;
}

void refuse_duplicate_keys(const dom::object& object, const std::string& where) {
  std::vector<std::string_view> keys;
  for (const auto field : object) keys.push_back(field.key);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) throw Error(fmt::format("'{}' stands there twice", *twice), where);
}

std::string json_excerpt(dom::element value) {
  constexpr size_t kLongest = 60;
  // Containers are named, not printed: a hostile file could hold a very large one.
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::ostringstream text;
  text << simdjson::minify(value);
  std::string excerpt = text.str();
  if (excerpt.size() <= kLongest) return excerpt;
  excerpt.resize(kLongest);
  while (!excerpt.empty() && (static_cast<unsigned char>(excerpt.back()) & 0xC0U) == 0x80U) excerpt.pop_back();
  if (!excerpt.empty() && static_cast<unsigned char>(excerpt.back()) >= 0xC0U) excerpt.pop_back();
  return excerpt + "…";
}

namespace {

[[noreturn]] void wrong(std::string_view field, std::string_view expected, dom::element value, const std::string& where) {
  throw Error(fmt::format("{} must be {}, not {}", field, expected, json_excerpt(value)), where);
}

}  // namespace

int64_t json_integer(std::string_view field, dom::element value, int64_t low, int64_t high, const std::string& where) {
  int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS || number < low || number > high) {
    wrong(field, fmt::format("a whole number from {} to {}", low, high), value, where);
  }
  return number;
}

double json_number(std::string_view field, dom::element value, const std::string& where) {
  double number = 0.0;
  if (value.get(number) != simdjson::SUCCESS || !std::isfinite(number)) wrong(field, "a number", value, where);
  return number;
}

bool json_boolean(std::string_view field, dom::element value, const std::string& where) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) wrong(field, "true or false", value, where);
  return flag;
}

std::string json_string(std::string_view field, dom::element value, const std::string& where) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) wrong(field, "a string", value, where);
  return std::string(text);
}

dom::object json_object(std::string_view field, dom::element value, const std::string& where) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) wrong(field, "an object", value, where);
  refuse_duplicate_keys(object, where);
  return object;
}

dom::array json_array(std::string_view field, dom::element value, const std::string& where) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) wrong(field, "a list", value, where);
  return array;
}

bool json_is_off(dom::element value) {
  switch (value.type()) {
    case dom::element_type::NULL_VALUE: return true;
    case dom::element_type::BOOL: return !bool(value);
    case dom::element_type::INT64: return int64_t(value) == 0;
    case dom::element_type::UINT64: return false;  // beyond int64
    case dom::element_type::DOUBLE: return double(value) == 0.0;
    case dom::element_type::STRING: return std::string_view(value).empty();
    case dom::element_type::ARRAY: return dom::array(value).begin() == dom::array(value).end();
    case dom::element_type::OBJECT: return dom::object(value).begin() == dom::object(value).end();
  }
  return false;
}

}  // namespace snug
