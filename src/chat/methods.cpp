// Methods of list, tuple, dict, int and float. Those of str are in text_methods.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/attributes.h"

namespace snug::chat {
namespace {

struct Entry {
  std::string_view name;
  Method method;
};

Value get(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "get", "/key ?default");
  const Value* found = self.dict()->find(bound.at(0));
  return found != nullptr ? *found : bound.value(1, Value::none());
}

template <Flavor flavor>
Value view(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "items", ""));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(self.dict()->size()));
  for (const auto& [key, value] : self.dict()->entries()) {
    items.push_back(flavor == Flavor::dict_keys ? key : flavor == Flavor::dict_values ? value : Value::tuple({key, value}));
  }
  spend(self.dict()->size());
  return Value::sequence(flavor, std::move(items));
}

Value copy(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "copy", ""));
  if (!self.is(Kind::dict)) return Value::list(self.sequence()->items);
  Dict entries;
  for (const auto& [key, value] : self.dict()->entries()) entries.set(key, value);
  spend(self.dict()->size());
  return Value::dict(std::move(entries));
}

Value count(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "count", "/value");
  const auto& items = self.sequence()->items;
  return Value::integer(std::ranges::count_if(items, [&](const Value& item) { return equal(item, bound.at(0)); }));
}

Value index(Interpreter&, const Value& self, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "index", "/value ?start ?stop");
  const auto& items = self.sequence()->items;
  const auto length = static_cast<int64_t>(items.size());
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = bound.integer(i, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  for (int64_t at = place(1, 0), end = place(2, length); at < end; ++at)
    if (equal(items[static_cast<size_t>(at)], bound.at(0))) return Value::integer(at);
  throw Error("the value is not in the list");
}

Value is_integer(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "is_integer", ""));
  return Value::boolean(std::isfinite(self.real()) && self.real() == std::floor(self.real()));
}

Value bit_length(Interpreter&, const Value& self, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "bit_length", ""));
  const int64_t number = *self.as_integer();
  const uint64_t magnitude = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  return Value::integer(magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude));
}

constexpr Entry kDict[] = {{"get", get},
                           {"items", view<Flavor::dict_items>},
                           {"keys", view<Flavor::dict_keys>},
                           {"values", view<Flavor::dict_values>},
                           {"copy", copy}};
constexpr Entry kList[] = {{"count", count}, {"index", index}, {"copy", copy}};
constexpr Entry kTuple[] = {{"count", count}, {"index", index}};
constexpr Entry kReal[] = {{"is_integer", is_integer}};
constexpr Entry kInteger[] = {{"bit_length", bit_length}};

template <size_t N>
Method find(const Entry (&entries)[N], std::string_view name) {
  const auto* found = std::ranges::find(entries, name, &Entry::name);
  return found == std::end(entries) ? nullptr : found->method;
}

}  // namespace

Method find_method(const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::string: return find_text_method(name);
    case Kind::dict: return find(kDict, name);
    case Kind::real: return find(kReal, name);
    case Kind::boolean:
    case Kind::integer: return find(kInteger, name);
    case Kind::sequence:
      if (object.is(Flavor::list)) return find(kList, name);
      return object.is(Flavor::tuple) && !object.sequence()->group ? find(kTuple, name) : nullptr;
    default: return nullptr;
  }
}

}  // namespace snug::chat
