// Which statements of a Python script stand under which conditions, and what hangs on the place of a value in it.

#include <algorithm>
#include <cstdlib>
#include <set>

#include "recipe/dialects/python_values.h"

namespace snug::dialects {

std::optional<double> number_of(const PythonValue& value) {
  if (value.kind == PythonValue::Kind::truth) return value.text == "true" ? 1 : 0;
  if (value.kind != PythonValue::Kind::number) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(value.text.c_str(), &end);
  return *end == '\0' ? std::optional(number) : std::nullopt;
}

std::optional<bool> truth_of(const PythonValue& value) {
  switch (value.kind) {
    case PythonValue::Kind::unknown: return std::nullopt;
    case PythonValue::Kind::none: return false;
    case PythonValue::Kind::truth: return value.text == "true";
    case PythonValue::Kind::number: return number_of(value).value_or(1) != 0;
    case PythonValue::Kind::text: return !value.text.empty();
    case PythonValue::Kind::list: return !value.items.empty();
    case PythonValue::Kind::dict: return !value.members.empty();
  }
  return std::nullopt;
}

// Which statement stands in which, by their indents; what functions return.
void PythonValues::gather_blocks() {
  std::vector<size_t> around;  // statements, the outermost first
  for (size_t begin = 0; begin < tokens_.size(); ++begin) {
    if (begin > 0 && tokens_[begin - 1].kind != PythonKind::line_end) continue;
    if (tokens_[begin].kind == PythonKind::line_end) continue;
    while (!around.empty() && tokens_[statements_[around.back()].begin].indent >= tokens_[begin].indent) around.pop_back();
    const size_t number = statements_.size();
    statements_.push_back({begin, around.empty() ? number : around.back()});
    if (tokens_[begin].is_word("return"))
      for (size_t of = around.size(); of-- > 0;)
        if (const size_t head = statements_[around[of]].begin; tokens_[head].is_word("def")) {
          returns_[token(head + 1).text].push_back(begin + 1);
          break;
        }
    around.push_back(number);
  }
}

size_t PythonValues::statement_of(size_t at) const {
  const auto behind = std::ranges::upper_bound(statements_, at, {}, &Statement::begin);
  return behind == statements_.begin() ? 0 : static_cast<size_t>(behind - statements_.begin()) - 1;
}

std::string PythonValues::function_around(size_t at) const {
  if (statements_.empty()) return {};
  std::string function;
  for (size_t here = statement_of(at); statements_[here].parent != here;) {
    here = statements_[here].parent;
    const size_t head = statements_[here].begin;
    if (token(head).is_word("def") || token(head).is_word("class")) function = token(head + 1).text;
  }
  return function;
}

std::optional<bool> PythonValues::runs(size_t at, size_t use) {
  std::optional<bool> all = true;
  if (statements_.empty()) return all;
  std::set<size_t> around_use;
  if (use < tokens_.size())
    for (size_t here = statement_of(use); around_use.insert(here).second;) here = statements_[here].parent;
  for (size_t here = statement_of(at); statements_[here].parent != here;) {
    here = statements_[here].parent;
    if (around_use.contains(here)) break;
    const std::optional<bool> one = holds(here);
    if (one == false) return false;
    if (!one) all = std::nullopt;
  }
  return all;
}

// Whether what stands in this statement is run where the statement itself is; asked once.
std::optional<bool> PythonValues::holds(size_t statement) {
  using Holds = Statement::Holds;
  Holds& known = statements_[statement].holds;
  if (known == Holds::unasked) {
    known = Holds::asked;  // a condition that hangs on itself is unknown
    const std::optional<bool> answer = condition(statement);
    statements_[statement].holds = !answer ? Holds::unknown : *answer ? Holds::yes : Holds::no;
  }
  const Holds found = statements_[statement].holds;
  return found == Holds::yes ? std::optional(true) : found == Holds::no ? std::optional(false) : std::nullopt;
}

std::optional<bool> PythonValues::condition(size_t statement) {
  const PythonToken& head = token(statements_[statement].begin);
  if (head.is_word("except")) return false;
  const bool first = head.is_word("if"), other = head.is_word("elif"), last = head.is_word("else");
  std::optional<bool> own = true;
  if (first || other) {
    size_t at = statements_[statement].begin + 1;
    own = truth_of(at_depth(&PythonValues::choice, at));
    if (!token(at).is(":")) own = std::nullopt;
  }
  if (!other && !last) return own;
  std::optional<bool> open = true;  // no branch before this one is taken
  for (size_t above = statement; above-- > 0;) {
    const PythonToken& word = token(statements_[above].begin);
    if (word.indent > head.indent) continue;
    if (word.indent < head.indent || (!word.is_word("if") && !word.is_word("elif"))) return own;  // of a loop or a try
    const std::optional<bool> taken = holds(above);
    if (taken == true) return false;
    if (!taken) open = std::nullopt;
    if (word.is_word("if")) break;
  }
  return own == false ? own : open ? own : std::nullopt;
}

// f"{name}-lora": names in braces, by what they are bound to.
PythonValue PythonValues::filled(const PythonToken& string) {
  std::string text;
  const std::string_view source = string.text;
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '}') return {};
    if (source[at] != '{') {
      text += source[at];
      continue;
    }
    const size_t end = source.find('}', at);
    if (end == std::string_view::npos) return {};
    const std::string name(source.substr(at + 1, end - at - 1));
    const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
    });
    if (!plain || depth_ >= kDeepestExpression || ++steps_ > kMostSteps) return {};
    ++depth_;
    const auto here = static_cast<size_t>(&string - tokens_.data());
    const PythonValue value = name.find('.') == std::string::npos ? of_name(name, here) : of_attribute(name, here);
    --depth_;
    if (value.kind != PythonValue::Kind::text && value.kind != PythonValue::Kind::number) return {};
    text += value.text;
    at = end;
  }
  return {.kind = PythonValue::Kind::text, .text = std::move(text)};
}

// The dict that a function of the script returns wherever it does.
PythonValue PythonValues::returned(std::string_view function) {
  const auto found = returns_.find(function);
  if (found == returns_.end()) return of_modules([&](PythonValues& values) { return values.returned(function); });
  if (found->second.size() != 1) return {};
  size_t at = found->second.front();
  PythonValue value = at_depth(&PythonValues::choice, at);
  return value.kind == PythonValue::Kind::dict ? value : PythonValue();
}

}  // namespace snug::dialects
