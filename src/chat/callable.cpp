#include "chat/callable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"

namespace snug::chat {
namespace {

struct NamedParameter {
  std::string_view name;
  bool optional = false;
};

std::vector<NamedParameter> split_parameters(std::string_view parameters) {
  std::vector<NamedParameter> list;
  while (!parameters.empty()) {
    const size_t space = parameters.find(' ');
    std::string_view name = parameters.substr(0, space);
    parameters.remove_prefix(space == std::string_view::npos ? parameters.size() : space + 1);
    const bool optional = name.starts_with('?');
    if (optional) name.remove_prefix(1);
    list.push_back({name, optional});
  }
  return list;
}

}  // namespace

int64_t Bound::integer(size_t i, int64_t otherwise) const {
  if (!has(i)) return otherwise;
  if (values_[i]->is_undefined()) refuse_undefined(*values_[i]);
  const auto number = values_[i]->as_integer();
  if (!number) throw Error(fmt::format("an argument must be a whole number, not {}", type_name(*values_[i])));
  return *number;
}

const TextRef& Bound::text(size_t i) const& {
  if (values_[i]->is_undefined()) refuse_undefined(*values_[i]);
  if (!values_[i]->is_string()) throw Error(fmt::format("an argument must be str, not {}", type_name(*values_[i])));
  return values_[i]->text();
}

Bound match_arguments(const CallArguments& arguments, std::string_view function, std::string_view parameters) {
  const bool by_position = parameters.starts_with('/');
  if (by_position) parameters.remove_prefix(1);
  const std::vector<NamedParameter> list = split_parameters(parameters);
  if (arguments.positional.size() > list.size()) {
    throw Error(fmt::format("{}() takes at most {} arguments, not {}", function, list.size(), arguments.positional.size()));
  }
  std::vector<std::optional<Value>> values(list.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(list, std::string_view(name), &NamedParameter::name);
    if (found == list.end() || by_position)
      throw Error(fmt::format("{}() takes no argument named {}", function, quote(name)));
    auto& slot = values[static_cast<size_t>(found - list.begin())];
    if (slot) throw Error(fmt::format("{}() is given {} twice", function, quote(name)));
    slot = value;
  }
  for (size_t i = 0; i < list.size(); ++i)
    if (!values[i] && !list[i].optional) throw Error(fmt::format("{}() misses its argument '{}'", function, list[i].name));
  return Bound(std::move(values));
}

}  // namespace snug::chat
