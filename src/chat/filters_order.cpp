// Filters that compare items: sorted, grouped, the least, the greatest, each once.

#include <algorithm>

#include "chat/filters.h"
#include "chat/lookup.h"

namespace snug::chat {
namespace {

std::optional<Value> optional_at(const Bound& bound, size_t i) {
  return bound.given(i) ? std::optional(bound.at(i)) : std::nullopt;
}

struct Keyed {
  Value key;
  Value item;
};

// Stable, also in reverse; merges by hand, for an order that throws or contradicts itself must not harm.
void sort_by_key(std::vector<Keyed>& items, bool reverse) {
  const auto before = [reverse](const Keyed& a, const Keyed& b) {
    return reverse ? less(b.key, a.key) : less(a.key, b.key);
  };
  std::vector<Keyed> merged(items.size());
  for (size_t width = 1; width < items.size(); width *= 2) {
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, items.size());
      const size_t end = std::min(begin + 2 * width, items.size());
      size_t left = begin;
      size_t right = middle;
      for (size_t at = begin; at < end; ++at) {
        const bool take_right = left == middle || (right < end && before(items[right], items[left]));
        merged[at] = std::move(items[take_right ? right++ : left++]);
      }
    }
    items.swap(merged);
  }
}

std::vector<Keyed> keyed(const SequenceRef& source, const std::vector<Lookup>& lookups) {
  std::vector<Keyed> items;
  for (const Value& item : source->items) {
    std::vector<Value> keys;
    for (const Lookup& lookup : lookups) keys.push_back(lookup(item));
    items.push_back({keys.size() == 1 ? keys[0] : Value::list(std::move(keys)), item});
  }
  return items;
}

std::vector<Value> without_keys(std::vector<Keyed> items) {
  std::vector<Value> result;
  result.reserve(items.size());
  for (Keyed& item : items) result.push_back(std::move(item.item));
  return result;
}

Value sort(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "sort", "?reverse ?case_sensitive ?attribute");
  std::vector<Keyed> items = keyed(iterate(input), lookups(optional_at(bound, 2), !bound.flag(1, false)));
  sort_by_key(items, bound.flag(0, false));
  return Value::list(without_keys(std::move(items)));
}

Value dictsort(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "dictsort", "?case_sensitive ?by ?reverse");
  int64_t position = 0;
  if (bound.has(1)) {
    const std::string_view by = bound.text(1)->view();
    if (by != "key" && by != "value") throw Error(R"(dictsort sorts by "key" or "value")");
    position = by == "value" ? 1 : 0;
  }
  if (input.is_undefined()) refuse_undefined(input);
  if (!input.is(Kind::dict)) throw Error("dictsort needs a mapping");
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.dict()->entries()) pairs.push_back(Value::tuple({key, value}));
  std::vector<Keyed> items =
      keyed(Value::list(std::move(pairs)).sequence(), {Lookup(Value::integer(position), !bound.flag(0, false))});
  sort_by_key(items, bound.flag(2, false));
  return Value::list(without_keys(std::move(items)));
}

Value unique(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "unique", "?case_sensitive ?attribute");
  const Lookup lookup(optional_at(bound, 1), !bound.flag(0, false));
  Dict seen;
  std::vector<Value> kept;
  const SequenceRef source = iterate(input);
  for (const Value& item : source->items) {
    const Value key = lookup(item);
    if (seen.find(key) != nullptr) continue;
    seen.set(key, Value::none());
    kept.push_back(item);
  }
  return Value::sequence(Flavor::generator, std::move(kept));
}

template <bool greatest>
Value extreme(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, greatest ? "max" : "min", "?case_sensitive ?attribute");
  const std::vector<Keyed> items = keyed(iterate(input), {Lookup(optional_at(bound, 1), !bound.flag(0, false))});
  if (items.empty()) return Value::undefined("there is no item to choose, the sequence was empty");
  const Keyed* best = &items[0];
  for (const Keyed& item : items)
    if (greatest ? less(best->key, item.key) : less(item.key, best->key)) best = &item;
  return best->item;
}

Value groupby(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "groupby", "attribute ?default ?case_sensitive");
  const bool fold = !bound.flag(2, false);
  const Lookup lookup(bound.at(0), fold, optional_at(bound, 1));
  const Lookup shown(bound.at(0), false, optional_at(bound, 1));
  std::vector<Keyed> items = keyed(iterate(input), {lookup});
  sort_by_key(items, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    std::vector<Value> members;
    size_t end = begin;
    while (end < items.size() && equal(items[end].key, items[begin].key)) members.push_back(items[end++].item);
    const Value name = shown(members[0]);
    auto group = std::make_shared<Sequence>();
    group->flavor = Flavor::tuple;
    group->items = {name, Value::list(std::move(members))};
    group->depth = std::max(name.depth(), group->items[1].depth()) + 1;
    group->group = true;
    groups.push_back(Value::sequence(SequenceRef(std::move(group))));
    begin = end;
  }
  return Value::list(std::move(groups));
}

constexpr std::pair<std::string_view, Filter> kOrderFilters[] = {
    {"sort", sort},          {"dictsort", dictsort}, {"unique", unique},
    {"min", extreme<false>}, {"max", extreme<true>}, {"groupby", groupby},
};

}  // namespace

Filter find_order_filter(std::string_view name) {
  const auto* found = std::ranges::find(kOrderFilters, name, [](const auto& entry) { return entry.first; });
  return found == std::end(kOrderFilters) ? nullptr : found->second;
}

}  // namespace snug::chat
