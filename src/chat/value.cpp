#include "chat/value.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace snug::chat {
namespace {

constexpr int kDeepestValue = 200;        // containers in containers
constexpr size_t kIndexFrom = 16;         // entries from which a Dict keeps an index
constexpr int64_t kContainerBytes = 128;  // of an empty one

int deeper(int depth) {
  if (depth >= kDeepestValue) throw Error(fmt::format("values nest more than {} deep", kDeepestValue));
  return depth + 1;
}

bool can_be_key(const Value& key) {
  if (key.is(Kind::dict)) return false;
  if (!key.is(Kind::sequence)) return true;
  return key.is(Flavor::tuple) && std::ranges::all_of(key.sequence()->items, can_be_key);
}

}  // namespace

std::optional<Value> Object::attribute(std::string_view) { return std::nullopt; }

Value Value::undefined(std::string reason) {
  return Value(std::in_place_index<0>, Undefined{std::make_shared<const std::string>(std::move(reason))});
}

Value Value::sequence(Flavor flavor, std::vector<Value> items) {
  auto sequence = std::make_shared<Sequence>();
  sequence->charge.add(kContainerBytes + static_cast<int64_t>(items.capacity() * sizeof(Value)));
  int depth = 0;
  spend(static_cast<int64_t>(items.size() / 8));
  for (const Value& item : items) depth = std::max(depth, item.depth());
  sequence->depth = deeper(depth);
  sequence->flavor = flavor;
  sequence->items = std::move(items);
  return Value(std::in_place_index<6>, std::move(sequence));
}

Value Value::range(std::vector<Value> numbers, int64_t start, int64_t stop, int64_t step) {
  auto sequence = std::make_shared<Sequence>();
  sequence->charge.add(kContainerBytes + static_cast<int64_t>(numbers.capacity() * sizeof(Value)));
  sequence->flavor = Flavor::range;
  sequence->items = std::move(numbers);
  sequence->printed =
      step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
  return Value(std::in_place_index<6>, std::move(sequence));
}

Value Value::dict(Dict entries) { return Value(std::in_place_index<7>, std::make_shared<Dict>(std::move(entries))); }

bool Value::is(Flavor flavor) const { return is(Kind::sequence) && sequence()->flavor == flavor; }

std::optional<int64_t> Value::as_integer() const {
  if (is(Kind::boolean)) return boolean() ? 1 : 0;
  if (is(Kind::integer)) return integer();
  return std::nullopt;
}

std::optional<double> Value::as_real() const {
  if (is(Kind::real)) return real();
  if (const auto whole = as_integer()) return static_cast<double>(*whole);
  return std::nullopt;
}

int Value::depth() const {
  if (is(Kind::sequence)) return sequence()->depth;
  if (is(Kind::dict)) return dict()->depth();
  return 0;
}

void Dict::set(Value key, Value value) {
  if (!can_be_key(key)) throw Error(fmt::format("unhashable type: '{}'", type_name(key)));
  depth_ = std::max(depth_, deeper(std::max(key.depth(), value.depth())));
  if (const auto place = locate(key)) {
    entries_[*place].second = std::move(value);
    return;
  }
  charge_->add(sizeof(Entry) + 32);
  entries_.emplace_back(std::move(key), std::move(value));
  if (entries_.size() < kIndexFrom) return;
  for (size_t i = entries_.size() == kIndexFrom ? 0 : entries_.size() - 1; i < entries_.size(); ++i) {
    if (entries_[i].first.is_string()) {
      charge_->add(64 + entries_[i].first.text()->size());
      index_.emplace(entries_[i].first.view(), i);
    }
  }
}

std::optional<size_t> Dict::locate(const Value& key) const {
  if (key.is_string() && entries_.size() >= kIndexFrom) {
    spend(key.text()->size() / Meter::kBytesPerStep);
    const auto found = index_.find(key.text()->bytes());
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  spend(static_cast<int64_t>(entries_.size() / kIndexFrom));
  for (size_t i = 0; i < entries_.size(); ++i)
    if (equal(entries_[i].first, key)) return i;
  return std::nullopt;
}

const Value* Dict::find(const Value& key) const {
  if (!can_be_key(key)) throw Error(fmt::format("unhashable type: '{}'", type_name(key)));
  const auto place = locate(key);
  return place ? &entries_[*place].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (entries_.size() >= kIndexFrom) {
    const auto found = index_.find(std::string(key));
    return found == index_.end() ? nullptr : &entries_[found->second].second;
  }
  for (const auto& [candidate, value] : entries_)
    if (candidate.is_string() && candidate.view() == key) return &value;
  return nullptr;
}

bool is_iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is(Kind::sequence) || value.is(Kind::dict);
}

SequenceRef iterate(const Value& value) {
  std::vector<Value> items;
  if (value.is(Kind::sequence)) {
    const SequenceRef& sequence = value.sequence();
    if (sequence->flavor != Flavor::generator) return sequence;
    items.assign(sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->taken), sequence->items.end());
    sequence->taken = sequence->items.size();
  } else if (value.is(Kind::dict)) {
    for (const auto& entry : value.dict()->entries()) items.push_back(entry.first);
  } else if (value.is_string()) {
    const TextRef& text = value.text();
    for (int64_t at = 0; at < text->size();) {
      const auto bytes = static_cast<int64_t>(utf8_length(text->view()[static_cast<size_t>(at)]));
      items.push_back(Value::text(text->piece(at, at + bytes)));
      at += bytes;
    }
  } else if (!value.is_undefined()) {
    throw Error(fmt::format("'{}' object is not iterable", type_name(value)));
  }
  spend(static_cast<int64_t>(items.size()));
  return Value::list(std::move(items)).sequence();
}

std::optional<int64_t> length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return 0;
    case Kind::string: return value.text()->length();
    case Kind::dict: return value.dict()->size();
    case Kind::object: return value.object()->length();
    case Kind::sequence:
      if (value.is(Flavor::generator)) return std::nullopt;
      return static_cast<int64_t>(value.sequence()->items.size());
    default: return std::nullopt;
  }
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return value.text()->markup() ? "Markup" : "str";
    case Kind::dict: return "dict";
    case Kind::object: return value.object()->type_name();
    case Kind::sequence: break;
  }
  switch (value.sequence()->flavor) {
    case Flavor::list: return "list";
    case Flavor::tuple: return "tuple";
    case Flavor::range: return "range";
    case Flavor::dict_keys: return "dict_keys";
    case Flavor::dict_values: return "dict_values";
    case Flavor::dict_items: return "dict_items";
    case Flavor::generator: return "generator";
  }
  return "object";
}

void refuse_undefined(const Value& value) {
  throw Error(value.reason() != nullptr ? *value.reason() : "a value is undefined");
}

}  // namespace snug::chat
