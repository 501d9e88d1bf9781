#pragma once
// Typed access to the fields of a config.json, for the readers of this room.

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/json.h"

namespace snug {

constexpr int64_t kLargestDimension = std::numeric_limits<int32_t>::max();  // token ids and row indices are 32 bits
constexpr int64_t kMostLayers = 100'000;
constexpr int64_t kMostExperts = 65'536;

class ConfigFields {
 public:
  // `where` names the file and must outlive this. `prefix` stands before field names in messages: "text_config.".
  ConfigFields(simdjson::dom::object object, const std::string& where, std::string prefix = {})
      : object_(object), where_(where), prefix_(std::move(prefix)) {}

  const simdjson::dom::object& object() const { return object_; }
  const std::string& where() const { return where_; }
  std::string label(std::string_view name) const { return prefix_ + std::string(name); }
  [[noreturn]] void refuse(const std::string& what, const std::string& mend = {}) const { throw Error(what, where_, mend); }

  // The field's value; none where it is absent or null.
  std::optional<simdjson::dom::element> field(std::string_view name) const {
    simdjson::dom::element value;
    if (object_.at_key(name).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
    return value;
  }
  // True if the field is there, be it null: only then do transformers' defaults not apply.
  bool given(std::string_view name) const { return object_.at_key(name).error() == simdjson::SUCCESS; }

  int64_t integer(std::string_view name, std::optional<int64_t> fallback, int64_t low, int64_t high) const {
    if (const auto value = field(name)) return json_integer(label(name), *value, low, high, where_);
    if (!fallback) refuse(fmt::format("{} is missing", label(name)), "every config.json has it");
    return *fallback;
  }
  int64_t dimension(std::string_view name, std::optional<int64_t> fallback = std::nullopt) const {
    return integer(name, fallback, 1, kLargestDimension);
  }
  double number(std::string_view name, double fallback) const {
    const auto value = field(name);
    return value ? json_number(label(name), *value, where_) : fallback;
  }
  double positive(std::string_view name, double fallback) const {
    const double value = number(name, fallback);
    if (!(value > 0.0)) refuse(fmt::format("{} must be positive", label(name)));
    return value;
  }
  bool boolean(std::string_view name, bool fallback) const {
    const auto value = field(name);
    return value ? json_boolean(label(name), *value, where_) : fallback;
  }
  std::string string(std::string_view name, std::string_view fallback) const {
    const auto value = field(name);
    return value ? json_string(label(name), *value, where_) : std::string(fallback);
  }
  std::vector<double> numbers(std::string_view name) const {
    std::vector<double> values;
    if (const auto value = field(name))
      for (const auto entry : json_array(label(name), *value, where_))
        values.push_back(json_number(label(name), entry, where_));
    return values;
  }
  // A token id or a list of them, of which the first counts; -1 where absent.
  int64_t token(std::string_view name, int64_t vocab_size) const {
    auto value = field(name);
    if (!value) return -1;
    if (value->is_array()) {
      const simdjson::dom::array ids = json_array(label(name), *value, where_);
      if (ids.begin() == ids.end()) return -1;
      value = *ids.begin();
    }
    return json_integer(label(name), *value, -1, vocab_size - 1, where_);
  }

 private:
  simdjson::dom::object object_;
  const std::string& where_;
  std::string prefix_;
};

}  // namespace snug
