#include "chat/filters.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "chat/builtins.h"

namespace snug::chat {
namespace {

constexpr std::string_view kLeftOut[] = {"pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"};

Filter find_filter(std::string_view name) {
  for (const auto find : {find_text_filter, find_sequence_filter, find_order_filter, find_number_filter})
    if (const Filter filter = find(name); filter != nullptr) return filter;
  return nullptr;
}

}  // namespace

bool is_filter(std::string_view name) {
  for (const std::string_view left_out : kLeftOut)
    if (name == left_out) return true;  // it is one, though not here: an error where it is reached
  return find_filter(name) != nullptr;
}

Value apply_filter(Interpreter& interpreter, const std::string& name, const Value& input, CallArguments& arguments) {
  spend(1);
  for (const std::string_view left_out : kLeftOut)
    if (name == left_out) throw Error(fmt::format("the filter {} is not supported in chat templates", quote(name)));
  const Filter filter = find_filter(name);
  if (filter == nullptr) throw Error(fmt::format("there is no filter {}", quote(name)));
  return filter(interpreter, input, arguments);
}

}  // namespace snug::chat
