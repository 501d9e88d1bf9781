#pragma once
// A JSON value that knows where it stands, so that every complaint names the file and the field. For this room alone.

#include <simdjson.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"

namespace snug {

class JsonNode {
 public:
  // `file` is named first in errors: "model/tokenizer.json".
  JsonNode(simdjson::dom::element element, std::string file, std::string path = {})
      : element_(element), file_(std::move(file)), path_(std::move(path)) {}

  simdjson::dom::element element() const { return element_; }
  std::string where() const { return path_.empty() ? file_ : file_ + ": " + path_; }

  [[noreturn]] void refuse(const std::string& what, const std::string& mend = "use the file as published") const {
    throw Error(what, where(), mend);
  }

  // The field `key`; none if it is absent or null. Throws if this is no object.
  std::optional<JsonNode> find(std::string_view key) const {
    simdjson::dom::object object;
    if (element_.get(object) != simdjson::SUCCESS) refuse("should be an object");
    simdjson::dom::element value;
    if (object.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return JsonNode(value, file_, path_.empty() ? std::string(key) : path_ + "." + std::string(key));
  }

  JsonNode at(std::string_view key) const {
    auto node = find(key);
    if (!node) refuse(quote(key) + " is missing");
    return *std::move(node);
  }

  // Refuses fields other than these.
  void allow(std::initializer_list<std::string_view> keys) const {
    simdjson::dom::object object;
    if (element_.get(object) != simdjson::SUCCESS) refuse("should be an object");
    for (const auto field : object) {
      bool known = false;
      for (const std::string_view key : keys) known = known || key == field.key;
      if (!known) refuse(quote(field.key) + " is not known to snug", "report the model");
    }
  }

  std::string_view string() const {
    std::string_view text;
    if (element_.get(text) != simdjson::SUCCESS) refuse("should be a string");
    return text;
  }

  int64_t integer() const {
    int64_t number = 0;
    if (element_.get(number) != simdjson::SUCCESS) refuse("should be a whole number");
    return number;
  }

  bool boolean() const {
    bool truth = false;
    if (element_.get(truth) != simdjson::SUCCESS) refuse("should be true or false");
    return truth;
  }

  std::vector<JsonNode> array() const {
    simdjson::dom::array list;
    if (element_.get(list) != simdjson::SUCCESS) refuse("should be a list");
    std::vector<JsonNode> nodes;
    for (const simdjson::dom::element item : list) {
      nodes.emplace_back(item, file_, path_ + "[" + std::to_string(nodes.size()) + "]");
    }
    return nodes;
  }

  std::string_view type() const { return at("type").string(); }
  bool boolean_or(std::string_view key, bool otherwise) const {
    const auto node = find(key);
    return node ? node->boolean() : otherwise;
  }

  // Refuses this component by its type.
  [[noreturn]] void refuse_type(const std::string& known) const {
    at("type").refuse(quote(type()) + " is not supported", "snug knows " + known);
  }

 private:
  simdjson::dom::element element_;
  std::string file_, path_;
};

}  // namespace snug
