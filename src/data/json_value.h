#pragma once
// A row's fields as a tree, whatever kind of file they came from: what JSON can say, objects in their written order. Knows
// nothing of files and of what the fields mean.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace snug {

struct JsonMember;

class JsonValue {
 public:
  using List = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  JsonValue();  // null
  explicit JsonValue(bool value);
  explicit JsonValue(int64_t value);
  explicit JsonValue(double value);
  explicit JsonValue(std::string value);
  explicit JsonValue(std::string_view value);
  explicit JsonValue(List value);
  explicit JsonValue(Object value);
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue();

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }

  // Null pointers where the value is of another type.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const int64_t* integer() const { return std::get_if<int64_t>(&value_); }
  const double* number() const { return std::get_if<double>(&value_); }
  const std::string* string() const { return std::get_if<std::string>(&value_); }
  const List* list() const { return std::get_if<List>(&value_); }
  const Object* object() const { return std::get_if<Object>(&value_); }
  List* list() { return std::get_if<List>(&value_); }
  Object* object() { return std::get_if<Object>(&value_); }

  // The member `name` of an object; null pointer if it is absent or null, or if this is no object.
  const JsonValue* find(std::string_view name) const;

  // "a list", "a string", …: for messages.
  std::string_view type_name() const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Object> value_;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

// A value can be made and destroyed only where a member is known whole.
inline JsonValue::JsonValue() = default;
inline JsonValue::JsonValue(bool value) : value_(value) {}
inline JsonValue::JsonValue(int64_t value) : value_(value) {}
inline JsonValue::JsonValue(double value) : value_(value) {}
inline JsonValue::JsonValue(std::string value) : value_(std::move(value)) {}
inline JsonValue::JsonValue(std::string_view value) : value_(std::string(value)) {}
inline JsonValue::JsonValue(List value) : value_(std::move(value)) {}
inline JsonValue::JsonValue(Object value) : value_(std::move(value)) {}
inline JsonValue::JsonValue(const JsonValue& other) = default;
inline JsonValue::JsonValue(JsonValue&& other) noexcept = default;
inline JsonValue& JsonValue::operator=(const JsonValue& other) = default;
inline JsonValue& JsonValue::operator=(JsonValue&& other) noexcept = default;
inline JsonValue::~JsonValue() = default;

inline const JsonValue* JsonValue::find(std::string_view name) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  for (const JsonMember& member : *members)
    if (member.name == name) return member.value.is_null() ? nullptr : &member.value;
  return nullptr;
}

inline std::string_view JsonValue::type_name() const {
  constexpr std::string_view kNames[] = {"null", "true or false", "a number", "a number", "a string", "a list", "an object"};
  return kNames[value_.index()];
}

}  // namespace snug
