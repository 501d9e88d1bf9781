// Truth, equality, order and membership, as Python has them.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "chat/search.h"
#include "chat/value.h"

namespace snug::chat {
namespace {

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a.entries(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

bool equal_sequences(const Value& a, const Value& b) {
  const Flavor flavor = a.sequence()->flavor;
  if (flavor != b.sequence()->flavor) return false;
  if (flavor == Flavor::generator || flavor == Flavor::dict_values) return a.sequence() == b.sequence();
  return a.sequence() == b.sequence() || equal_items(a.sequence()->items, b.sequence()->items);
}

[[noreturn]] void no_order(const Value& a, const Value& b) {
  throw Error(fmt::format("'{}' and '{}' have no order", type_name(a), type_name(b)));
}

}  // namespace

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean: return value.boolean();
    case Kind::integer: return value.integer() != 0;
    case Kind::real: return value.real() != 0.0;
    default: return length_of(value).value_or(1) != 0;
  }
}

bool equal(const Value& a, const Value& b) {
  spend(1);
  const auto left = a.as_integer();
  const auto right = b.as_integer();
  if (left && right) return *left == *right;
  if (const auto x = a.as_real(), y = b.as_real(); x && y) return *x == *y;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::string: spend_bytes(a.text()->size()); return a.view() == b.view();
    case Kind::sequence: return equal_sequences(a, b);
    case Kind::dict: return a.dict() == b.dict() || equal_dicts(*a.dict(), *b.dict());
    case Kind::object: return a.object() == b.object();
    default: return true;  // undefined or none, both
  }
}

bool less(const Value& a, const Value& b) {
  spend(1);
  if (a.is_undefined()) refuse_undefined(a);
  if (b.is_undefined()) refuse_undefined(b);
  const auto left = a.as_integer();
  const auto right = b.as_integer();
  if (left && right) return *left < *right;
  if (const auto x = a.as_real(), y = b.as_real(); x && y) return *x < *y;
  if (a.is_string() && b.is_string()) {
    spend_bytes(a.text()->size());
    return a.view() < b.view();  // the order of UTF-8 bytes is that of code points
  }
  if (!a.is(Kind::sequence) || !b.is(Kind::sequence)) no_order(a, b);
  const Flavor flavor = a.sequence()->flavor;
  if (flavor != b.sequence()->flavor || (flavor != Flavor::list && flavor != Flavor::tuple)) no_order(a, b);
  const auto& x = a.sequence()->items;
  const auto& y = b.sequence()->items;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
    if (!equal(x[i], y[i])) return less(x[i], y[i]);
  return x.size() < y.size();
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) {
      throw Error(fmt::format("'in <string>' requires a string on the left, not {}", type_name(item)));
    }
    return find_bytes(container.view(), item.view(), 0) >= 0;
  }
  if (container.is(Kind::dict)) return container.dict()->find(item) != nullptr;
  if (!is_iterable(container)) throw Error(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  const SequenceRef sequence = iterate(container);
  return std::ranges::any_of(sequence->items, [&](const Value& candidate) { return equal(candidate, item); });
}

bool same_object(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::sequence: return a.sequence() == b.sequence();
    case Kind::dict: return a.dict() == b.dict();
    case Kind::object: return a.object() == b.object();
    case Kind::undefined: return false;
    default: return equal(a, b);
  }
}

int64_t find_bytes(std::string_view text, std::string_view wanted, int64_t from) {
  const auto start = static_cast<size_t>(from);
  if (start > text.size()) return -1;
  spend_bytes(static_cast<int64_t>(text.size() - start));
  if (wanted.empty()) return from;
  return seek_bytes(text, wanted, from);
}

int64_t seek_bytes(std::string_view text, std::string_view wanted, int64_t from) {
  const auto start = static_cast<size_t>(from);
  // memmem: linear also for hostile texts, which std::string_view::find is not
  const void* found = ::memmem(text.data() + start, text.size() - start, wanted.data(), wanted.size());
  return found == nullptr ? -1 : static_cast<const char*>(found) - text.data();
}

int64_t find_last_bytes(std::string_view text, std::string_view wanted) {
  spend_bytes(static_cast<int64_t>(text.size()));
  if (wanted.size() <= 1 || text.size() < wanted.size()) {
    const size_t at = text.rfind(wanted);
    return at == std::string_view::npos ? -1 : static_cast<int64_t>(at);
  }
  std::string backwards(text.rbegin(), text.rend());
  const std::string needle(wanted.rbegin(), wanted.rend());
  const int64_t at = find_bytes(backwards, needle, 0);
  return at < 0 ? -1 : static_cast<int64_t>(text.size() - wanted.size()) - at;
}

}  // namespace snug::chat
