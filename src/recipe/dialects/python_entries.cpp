#include "recipe/dialects/python_entries.h"

#include <utility>

#include "base/error.h"
#include "recipe/dialects/own_words.h"

namespace snug::dialects {

using Kind = PythonValue::Kind;

void Entries::take_all(const Call* call) {
  if (!call) return;
  for (const Argument& argument : call->arguments)
    if (!argument.name.empty() && argument.value.kind != Kind::dict && argument.value.kind != Kind::object)
      add(argument.name, argument);
}

void Entries::add(std::string path, const Argument& argument) {
  const PythonValue& value = argument.value;
  if (!value.known()) {
    if (std::ranges::find(kMatter, path) != kMatter.end()) document_.unread.push_back(path);
    return;
  }
  if (value.kind == Kind::dict || value.kind == Kind::object || document_.has(path)) return;
  if (flags_ && !value.flag.empty()) (*flags_)[path] = value.flag;
  if (value.of_several) document_.firsts.push_back(path);
  constexpr size_t kMostEntries = 1000;
  if (document_.entries.size() == kMostEntries)
    throw Error("the calls have too many arguments", document_.where, "is this a script that trains?");
  Entry entry = made(std::move(path), argument.span);
  entry.value = value.literal ? value.span : argument.span;
  entry.in_place = in_place_ && value.literal;
  if (value.kind == Kind::list) {
    entry.kind = EntryKind::list;
    for (const PythonValue& item : value.items) entry.values.push_back(item.text);
  } else if (value.kind != Kind::none) {
    entry.values = {value.text};
  }
  document_.entries.push_back(std::move(entry));
}

void Entries::say(std::string path, std::string value, const Span& span) {
  Entry entry = made(std::move(path), span);
  entry.values = {std::move(value)};
  entry.value = span;
  document_.entries.push_back(std::move(entry));
}

Entry Entries::made(std::string path, const Span& span) const {
  Entry entry;
  entry.path = std::move(path);
  const auto begin = document_.text.begin();
  const auto at = static_cast<std::ptrdiff_t>(std::min(span.begin, document_.text.size()));
  if (span.end > span.begin) entry.line = std::count(begin, begin + at, '\n') + 1;  // else it stands in another file
  entry.name = span;
  return entry;
}

const Argument* argument_of(const Call* call, std::string_view name, size_t place) {
  if (!call) return nullptr;
  if (const Argument* named = call->find(name)) return named;
  const bool by_place = place < call->arguments.size() && call->arguments[place].name.empty();
  return by_place ? &call->arguments[place] : nullptr;
}

}  // namespace snug::dialects
