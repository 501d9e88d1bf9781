// Filters over sequences and mappings that keep their order.

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "chat/attributes.h"
#include "chat/filters.h"
#include "chat/lookup.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

std::optional<Value> optional_argument(const Bound& bound, size_t i) {
  return bound.has(i) ? std::optional(bound.at(i)) : std::nullopt;
}

Value generator(std::vector<Value> items) { return Value::sequence(Flavor::generator, std::move(items)); }

Value length(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "length", ""));
  const auto length = length_of(input);
  if (!length) throw Error(fmt::format("object of type '{}' has no len()", type_name(input)));
  return Value::integer(*length);
}

Value first(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "first", ""));
  if (input.is(Flavor::generator)) {  // it gives up one item only
    const Sequence& sequence = *input.sequence();
    if (sequence.taken < sequence.items.size()) return sequence.items[sequence.taken++];
    return Value::undefined("there is no first item, the sequence was empty");
  }
  const SequenceRef items = iterate(input);
  return items->items.empty() ? Value::undefined("there is no first item, the sequence was empty") : items->items.front();
}

Value last(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "last", ""));
  if (input.is(Flavor::generator)) throw Error("'generator' object is not reversible");
  const SequenceRef items = iterate(input);
  return items->items.empty() ? Value::undefined("there is no last item, the sequence was empty") : items->items.back();
}

Value list(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "list", ""));
  return Value::list(iterate(input)->items);
}

Value reverse(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "reverse", ""));
  if (input.is_string()) return get_slice(input, Value::none(), Value::none(), Value::integer(-1));
  std::vector<Value> items = iterate(input)->items;
  std::ranges::reverse(items);
  return input.is(Flavor::generator) ? Value::list(std::move(items)) : generator(std::move(items));
}

Value items(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "items", ""));
  std::vector<Value> pairs;
  if (input.is_undefined()) return generator(std::move(pairs));
  if (!input.is(Kind::dict)) throw Error("only a mapping has item pairs");
  for (const auto& [key, value] : input.dict()->entries()) pairs.push_back(Value::tuple({key, value}));
  return generator(std::move(pairs));
}

Value join(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "join", "?d ?attribute");
  const Lookup lookup(optional_argument(bound, 1));
  const TextRef separator = bound.has(0) ? to_str(bound.at(0)) : make_text(std::string());
  const SequenceRef parts = iterate(input);
  TextBuilder builder;
  for (size_t i = 0; i < parts->items.size(); ++i) {
    if (i > 0) builder.add(*separator);
    write_str(builder, lookup(parts->items[i]));
  }
  return Value::text(builder.take());
}

Value fallback(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "default", "?default_value ?boolean");
  const bool replaced = input.is_undefined() || (bound.flag(1, false) && !truth(input));
  return replaced ? bound.value(0, Value::text(std::string())) : input;
}

Value map(Interpreter& interpreter, const Value& input, CallArguments& arguments) {
  std::vector<Value> mapped;
  if (!truth(input)) return generator(std::move(mapped));
  const SequenceRef source = iterate(input);
  if (arguments.positional.empty()) {
    CallArguments named;
    named.named = arguments.named;
    const Bound bound = match_arguments(named, "map", "attribute ?default");
    const Lookup lookup(bound.at(0), false, bound.given(1) ? std::optional(bound.at(1)) : std::nullopt);
    for (const Value& item : source->items) mapped.push_back(lookup(item));
    return generator(std::move(mapped));
  }
  const Value name = arguments.positional[0];
  if (!name.is_string()) throw Error("map needs the name of a filter");
  for (const Value& item : source->items) {
    CallArguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
    mapped.push_back(apply_filter(interpreter, name.text()->bytes(), item, rest));
  }
  return generator(std::move(mapped));
}

// select, reject, selectattr and rejectattr.
template <bool keep, bool by_attribute>
Value select(Interpreter& interpreter, const Value& input, CallArguments& arguments) {
  std::vector<Value> chosen;
  if (!truth(input)) return generator(std::move(chosen));
  auto rest = arguments.positional.begin();
  std::optional<Value> attribute;
  if (by_attribute) {
    if (rest == arguments.positional.end()) throw Error("the name of an attribute is missing");
    attribute = *rest++;
  }
  const Lookup lookup(attribute);
  const bool tested = rest != arguments.positional.end();
  const Value name = tested ? *rest++ : Value::none();
  if (tested && !name.is_string()) throw Error("the name of a test is missing");
  const SequenceRef source = iterate(input);
  for (const Value& item : source->items) {
    const Value value = lookup(item);
    CallArguments given{{rest, arguments.positional.end()}, arguments.named};
    const bool passes = tested ? apply_test(interpreter, name.text()->bytes(), value, given) : truth(value);
    if (passes == keep) chosen.push_back(item);
  }
  return generator(std::move(chosen));
}

Value batch(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "batch", "linecount ?fill_with");
  const int64_t size = bound.integer(0, 1);
  std::vector<Value> rows;
  std::vector<Value> row;
  const SequenceRef source = iterate(input);
  for (const Value& item : source->items) {
    if (static_cast<int64_t>(row.size()) == size) rows.push_back(Value::list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    for (auto i = static_cast<int64_t>(row.size()); bound.given(1) && i < size; ++i) {
      spend(1);
      row.push_back(bound.at(1));
    }
    rows.push_back(Value::list(std::move(row)));
  }
  return generator(std::move(rows));
}

Value slice(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "slice", "slices ?fill_with");
  const int64_t slices = bound.integer(0, 1);
  const SequenceRef source = iterate(input);
  const auto length = static_cast<int64_t>(source->items.size());
  if (slices == 0) throw Error("division by zero");
  std::vector<Value> columns;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    spend(1);
    const int64_t end = begin + length / slices + (i < length % slices ? 1 : 0);
    std::vector<Value> column(source->items.begin() + begin, source->items.begin() + end);
    if (bound.given(1) && i >= length % slices) column.push_back(bound.at(1));
    columns.push_back(Value::list(std::move(column)));
    begin = end;
  }
  return generator(std::move(columns));
}

Value attr(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "attr", "name");
  if (input.is_undefined()) refuse_undefined(input);
  const std::string& name = bound.text(0)->bytes();
  // like a.b, but it does not fall back to a['b']
  if (input.is(Kind::dict) && find_method(input, name) == nullptr) {
    return Value::undefined(fmt::format("'dict object' has no attribute {}", quote(name)));
  }
  return get_attribute(input, name);
}

constexpr std::pair<std::string_view, Filter> kSequenceFilters[] = {
    {"length", length},
    {"count", length},
    {"first", first},
    {"last", last},
    {"list", list},
    {"reverse", reverse},
    {"items", items},
    {"join", join},
    {"default", fallback},
    {"d", fallback},
    {"map", map},
    {"select", select<true, false>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<false, true>},
    {"batch", batch},
    {"slice", slice},
    {"attr", attr},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  const auto* found = std::ranges::find(kSequenceFilters, name, [](const auto& entry) { return entry.first; });
  return found == std::end(kSequenceFilters) ? nullptr : found->second;
}

}  // namespace snug::chat
