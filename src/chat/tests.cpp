// Tests: "value is name".

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "base/utf8.h"
#include "chat/builtins.h"
#include "chat/characters.h"
#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

// All letters that have a case are of this one, and there is one.
bool all_cased(const Value& value, bool (*wanted)(char32_t), bool (*other)(char32_t)) {
  const TextRef text = to_str(value);
  spend_bytes(text->size());
  bool found = false;
  for (std::string_view rest = text->view(); !rest.empty(); rest.remove_prefix(utf8_length(rest[0]))) {
    const char32_t character = decode(rest);
    if (other(character) || is_title(character)) return false;
    found = found || wanted(character);
  }
  return found;
}

bool divides(const Value& value, const Value& by) {
  return equal(apply_binary(Operator::modulo, value, by), Value::integer(0));
}

struct Test {
  std::string_view name;
  std::string_view parameters;
  bool (*apply)(const Value& value, const Bound& arguments);
};

template <Operator op>
bool compares(const Value& value, const Bound& arguments) {
  return apply_comparison(op, value, arguments.at(0));
}

bool is_number(const Value& value) { return value.as_real().has_value(); }
bool is_sequence(const Value& value) {
  if (value.is(Kind::sequence)) {
    return value.is(Flavor::list) || value.is(Flavor::tuple) || value.is(Flavor::range);
  }
  return value.is_string() || value.is(Kind::dict) || value.is_undefined();
}
bool is_callable(const Value& value) {
  return value.is_undefined() || (value.is(Kind::object) && dynamic_cast<Callable*>(value.object().get()) != nullptr);
}
bool is_loop(const Value& value) { return value.is(Kind::object) && type_name(value) == "LoopContext"; }

constexpr Test kTests[] = {
    {"odd", "",
     [](const Value& v, const Bound&) {
       return equal(apply_binary(Operator::modulo, v, Value::integer(2)), Value::integer(1));
     }},
    {"even", "", [](const Value& v, const Bound&) { return divides(v, Value::integer(2)); }},
    {"divisibleby", "num", [](const Value& v, const Bound& a) { return divides(v, a.at(0)); }},
    {"defined", "", [](const Value& v, const Bound&) { return !v.is_undefined(); }},
    {"undefined", "", [](const Value& v, const Bound&) { return v.is_undefined(); }},
    {"filter", "", [](const Value& v, const Bound&) { return v.is_string() && is_filter(v.view()); }},
    {"test", "", [](const Value& v, const Bound&) { return v.is_string() && is_test(v.view()); }},
    {"none", "", [](const Value& v, const Bound&) { return v.is(Kind::none); }},
    {"boolean", "", [](const Value& v, const Bound&) { return v.is(Kind::boolean); }},
    {"false", "", [](const Value& v, const Bound&) { return v.is(Kind::boolean) && !v.boolean(); }},
    {"true", "", [](const Value& v, const Bound&) { return v.is(Kind::boolean) && v.boolean(); }},
    {"integer", "", [](const Value& v, const Bound&) { return v.is(Kind::integer); }},
    {"float", "", [](const Value& v, const Bound&) { return v.is(Kind::real); }},
    {"lower", "", [](const Value& v, const Bound&) { return all_cased(v, is_lower, is_upper); }},
    {"upper", "", [](const Value& v, const Bound&) { return all_cased(v, is_upper, is_lower); }},
    {"string", "", [](const Value& v, const Bound&) { return v.is_string(); }},
    {"mapping", "", [](const Value& v, const Bound&) { return v.is(Kind::dict); }},
    {"number", "", [](const Value& v, const Bound&) { return is_number(v); }},
    {"sequence", "", [](const Value& v, const Bound&) { return is_sequence(v); }},
    {"iterable", "", [](const Value& v, const Bound&) { return is_iterable(v) || is_loop(v); }},
    {"callable", "", [](const Value& v, const Bound&) { return is_callable(v); }},
    {"sameas", "other", [](const Value& v, const Bound& a) { return same_object(v, a.at(0)); }},
    {"escaped", "", [](const Value& v, const Bound&) { return v.is_string() && v.text()->markup(); }},
    {"in", "seq", compares<Operator::in>},
    {"==", "other", compares<Operator::equal>},
    {"eq", "other", compares<Operator::equal>},
    {"equalto", "other", compares<Operator::equal>},
    {"!=", "other", compares<Operator::unequal>},
    {"ne", "other", compares<Operator::unequal>},
    {">", "other", compares<Operator::greater>},
    {"gt", "other", compares<Operator::greater>},
    {"greaterthan", "other", compares<Operator::greater>},
    {"ge", "other", compares<Operator::greater_equal>},
    {">=", "other", compares<Operator::greater_equal>},
    {"<", "other", compares<Operator::less>},
    {"lt", "other", compares<Operator::less>},
    {"lessthan", "other", compares<Operator::less>},
    {"<=", "other", compares<Operator::less_equal>},
    {"le", "other", compares<Operator::less_equal>},
};

const Test* find_test(std::string_view name) {
  const auto* found = std::ranges::find(kTests, name, &Test::name);
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace

bool is_test(std::string_view name) { return find_test(name) != nullptr; }

bool apply_test(Interpreter&, const std::string& name, const Value& value, CallArguments& arguments) {
  spend(1);
  const Test* test = find_test(name);
  if (test == nullptr) throw Error(fmt::format("there is no test {}", quote(name)));
  return test->apply(value, match_arguments(arguments, name, test->parameters));
}

}  // namespace snug::chat
