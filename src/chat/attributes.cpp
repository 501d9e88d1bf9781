#include "chat/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/quote.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

// Methods that change their object.
bool changes(const Value& object, std::string_view name) {
  static constexpr std::array<std::string_view, 8> kList = {"append", "clear", "pop",    "reverse",
                                                            "insert", "sort",  "extend", "remove"};
  static constexpr std::array<std::string_view, 5> kDict = {"clear", "pop", "popitem", "setdefault", "update"};
  return (object.is(Flavor::list) && is_one_of(name, kList)) || (object.is(Kind::dict) && is_one_of(name, kDict));
}

// Methods of str that snug leaves out.
bool is_refused(const Value& object, std::string_view name) {
  static constexpr std::array<std::string_view, 7> kText = {"encode",     "translate",  "maketrans",   "casefold",
                                                            "expandtabs", "format_map", "isidentifier"};
  return object.is_string() && is_one_of(name, kText);
}

Value missing(const Value& object, const std::string& shown) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", type_name(object), shown));
}

// An attribute proper; none if Python would raise AttributeError.
std::optional<Value> attribute_of(const Value& object, const std::string& name) {
  if (object.is(Kind::object)) return object.object()->attribute(name);
  if (object.is(Flavor::tuple) && object.sequence()->group) {
    if (name == "grouper") return object.sequence()->items[0];
    if (name == "list") return object.sequence()->items[1];
  }
  if (object.is(Flavor::range)) return std::nullopt;
  if (is_refused(object, name)) throw Error(fmt::format("the method {} is not supported", quote(name)));
  if (changes(object, name)) {
    return Value::undefined(fmt::format("'{}' would change a {}, which templates may not", name, type_name(object)));
  }
  if (name.starts_with("__")) {
    return Value::undefined(fmt::format("access to attribute '{}' is unsafe", name));
  }
  const Method method = find_method(object, name);
  if (method == nullptr) return std::nullopt;
  return make_function([object, method](Interpreter& interpreter, CallArguments& arguments) {
    return method(interpreter, object, arguments);
  });
}

std::optional<Value> at_index(const Value& object, int64_t index) {
  const auto length = length_of(object);
  if (!length) return std::nullopt;
  if (index < 0) index += *length;
  if (index < 0 || index >= *length) return std::nullopt;
  if (object.is(Kind::sequence)) return object.sequence()->items[static_cast<size_t>(index)];
  const TextRef& text = object.text();
  return Value::text(text->piece(text->offset_of(index), text->offset_of(index + 1)));
}

bool is_indexed(const Value& object) {
  return object.is_string() || object.is(Flavor::list) || object.is(Flavor::tuple) || object.is(Flavor::range);
}

// object[key]; none if Python would raise TypeError or LookupError.
std::optional<Value> item_of(const Value& object, const Value& key) {
  if (object.is(Kind::dict)) {
    if (key.is(Kind::dict) || key.is(Flavor::list)) return std::nullopt;
    const Value* found = object.dict()->find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  const auto index = key.as_integer();
  return index && is_indexed(object) ? at_index(object, *index) : std::nullopt;
}

}  // namespace

Value get_attribute(const Value& object, const std::string& name) {
  if (object.is_undefined()) refuse_undefined(object);
  if (auto found = attribute_of(object, name)) return *std::move(found);
  if (auto found = item_of(object, Value::text(name))) return *std::move(found);
  return missing(object, name);
}

Value get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) refuse_undefined(object);
  if (auto found = item_of(object, key)) return *std::move(found);
  if (key.is_string()) {
    if (auto found = attribute_of(object, key.text()->bytes())) return *std::move(found);
  }
  return missing(object, key.is(Kind::object) ? std::string("…") : to_str(key)->bytes());
}

Value get_slice(const Value& object, const Value& begin, const Value& end, const Value& step) {
  if (object.is_undefined()) refuse_undefined(object);
  if (!is_indexed(object)) throw Error(fmt::format("'{}' object cannot be sliced", type_name(object)));
  const int64_t length = *length_of(object);
  const auto bound_of = [&](const Value& value, int64_t otherwise) {
    if (value.is(Kind::none)) return otherwise;
    const auto whole = value.as_integer();
    if (!whole) throw Error("slice indices must be integers or None");
    return *whole;
  };
  const int64_t stride = bound_of(step, 1);
  if (stride == 0) throw Error("slice step cannot be zero");
  const int64_t low = stride < 0 ? -1 : 0;
  const int64_t high = stride < 0 ? length - 1 : length;
  const auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + length : at, low, high); };
  const int64_t from = begin.is(Kind::none) ? (stride < 0 ? high : low) : clamp(bound_of(begin, 0));
  const int64_t to = end.is(Kind::none) ? (stride < 0 ? low : high) : clamp(bound_of(end, 0));
  if (object.is_string() && stride == 1) {
    const TextRef& text = object.text();
    return Value::text(from < to ? text->piece(text->offset_of(from), text->offset_of(to)) : text->piece(0, 0));
  }
  const SequenceRef all = iterate(object);
  std::vector<Value> picked;
  for (int64_t at = from; stride < 0 ? at > to : at < to;) {
    spend(1);
    picked.push_back(all->items[static_cast<size_t>(at)]);
    if (__builtin_add_overflow(at, stride, &at)) break;
  }
  if (object.is(Flavor::range)) return Value::list(std::move(picked));
  if (!object.is_string())
    return Value::sequence(object.is(Flavor::tuple) ? Flavor::tuple : Flavor::list, std::move(picked));
  TextBuilder builder;
  for (const Value& character : picked) builder.add(*character.text());
  return Value::text(builder.take(object.text()->markup()));
}

}  // namespace snug::chat
