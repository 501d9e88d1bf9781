#include "chat/lookup.h"

#include <algorithm>
#include <charconv>

#include "chat/attributes.h"
#include "chat/text_operations.h"

namespace snug::chat {
namespace {

Value part_of_path(std::string_view part) {
  int64_t index = 0;
  const bool digits = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
  if (digits && std::from_chars(part.data(), part.data() + part.size(), index).ec == std::errc{})
    return Value::integer(index);
  return Value::text(std::string(part));
}

Value folded(const Value& value) { return value.is_string() ? Value::text(lower(value.text())) : value; }

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace

Lookup::Lookup(const std::optional<Value>& attribute, bool fold, std::optional<Value> otherwise)
    : fold_(fold), otherwise_(std::move(otherwise)) {
  if (!attribute || attribute->is(Kind::none)) return;
  if (attribute->is_string()) {
    for (const std::string_view part : split_at(attribute->view(), '.')) path_.push_back(part_of_path(part));
  } else {
    path_.push_back(*attribute);
  }
}

Value Lookup::operator()(const Value& item) const {
  spend(1);
  Value value = item;
  for (const Value& part : path_) {
    value = get_item(value, part);
    if (otherwise_ && value.is_undefined()) value = *otherwise_;
  }
  return fold_ ? folded(value) : value;
}

std::vector<Lookup> lookups(const std::optional<Value>& attribute, bool fold) {
  std::vector<Lookup> result;
  if (attribute && attribute->is_string()) {
    for (const std::string_view part : split_at(attribute->view(), ',')) {
      result.emplace_back(Value::text(std::string(part)), fold);
    }
  } else {
    result.emplace_back(attribute, fold);
  }
  return result;
}

}  // namespace snug::chat
