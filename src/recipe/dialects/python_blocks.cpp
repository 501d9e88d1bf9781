// Which statements of a Python script stand under which conditions, and what hangs on the place of a value in it.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "recipe/dialects/python_files.h"

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
    case PythonValue::Kind::object: return true;
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
    if (tokens_[begin].is_word("class")) classes_.emplace(token(begin + 1).text, begin);
    if (const size_t at = return_in(begin); at < tokens_.size())
      for (size_t of = around.size(); of-- > 0;)
        if (const size_t head = statements_[around[of]].begin; tokens_[head].is_word("def")) {
          returns_[token(head + 1).text].push_back(at + 1);
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

// Behind the colon of "if a: b = 1"; `end` of others.
size_t PythonValues::behind_head(size_t begin, size_t end) const {
  constexpr std::array<std::string_view, 3> kHeads = {"if", "elif", "else"};
  if (begin >= end || tokens_[begin].kind != PythonKind::name) return end;
  if (std::ranges::find(kHeads, tokens_[begin].text) == kHeads.end()) return end;
  for (size_t at = begin + 1; at < end;) {
    if (tokens_[at].is(":")) return at + 1;
    if (opens(tokens_[at])) {
      pass_brackets(at);
    } else {
      ++at;
    }
  }
  return end;
}

// Where the statement that begins there returns, itself or behind its head, "if a: return b"; the number of tokens: it does
// not.
size_t PythonValues::return_in(size_t begin) const {
  if (tokens_[begin].is_word("return")) return begin;
  size_t end = begin;
  while (end < tokens_.size() && tokens_[end].kind != PythonKind::line_end) ++end;
  const size_t behind = behind_head(begin, end);
  return behind < end && tokens_[behind].is_word("return") ? behind : tokens_.size();
}

// The statement of the innermost function around; the number of statements: none.
size_t PythonValues::def_around(size_t at) const {
  for (size_t here = statement_of(at); !statements_.empty() && statements_[here].parent != here;) {
    here = statements_[here].parent;
    if (token(statements_[here].begin).is_word("def")) return here;
  }
  return statements_.size();
}

// Whether what is bound there is seen there by its name alone: in the same function, in one around it, or outside of all.
bool PythonValues::is_in_scope(size_t binding, size_t use) const {
  if (use >= tokens_.size()) return false;
  const size_t def = def_around(binding);
  if (def == statements_.size()) return class_around(statement_of(binding)).empty();
  for (size_t here = statement_of(use); statements_[here].parent != here;) {
    here = statements_[here].parent;
    if (here == def) return true;
  }
  return false;
}

// What a part of an object is made later, "args.rows = 1": the last before `at` that is run; unknown where only Python knows
// whether it is.
std::optional<PythonValue> PythonValues::put_later(const std::string& path, size_t at) {
  const auto found = parts_.find(path);
  if (found == parts_.end() || at >= tokens_.size()) return std::nullopt;
  for (auto part = found->second.rbegin(); part != found->second.rend(); ++part) {
    if (++steps_ > kMostSteps) return PythonValue();
    if (part->at >= at || (part->value <= at && at < pass_expression(part->value))) continue;
    const std::optional<bool> is_run = runs(part->at, at);
    if (is_run == false) continue;
    return is_run ? worth(*part) : PythonValue();
  }
  return std::nullopt;
}

// "if not args.a: return" in the same block before: what follows is not run. Of a setting: lists are filled as the script
// goes.
bool PythonValues::returns_before(size_t statement) {
  const size_t parent = statements_[statement].parent;
  for (size_t other = parent + 1; parent != statement && other < statement; ++other) {
    if (++steps_ > kMostSteps) return false;
    const size_t head = statements_[other].begin, inside = other + 1;
    if (statements_[other].parent != parent || !token(head).is_word("if")) continue;
    size_t ends = return_in(head);
    if (inside < statement && statements_[inside].parent == other && token(statements_[inside].begin).is_word("return"))
      ends = statements_[inside].begin;
    if (ends == tokens_.size()) continue;
    bool of_setting = false;
    for (size_t at = head; at < ends; ++at) of_setting = of_setting || tokens_[at].is(".");
    if (of_setting && holds(other) == true) return true;
  }
  return false;
}

// A function whose calls are none of them run is not run either; one that nothing calls by its name, or that another file
// may call, is.
std::optional<bool> PythonValues::is_called(size_t def) {
  if (files_ && files_->everybody().front() != this) return true;
  const auto calls = calls_.find(token(statements_[def].begin + 1).text);
  if (calls == calls_.end() || !class_around(def).empty()) return true;
  if (depth_ >= kDeepestExpression) return true;  // callers of callers: the rest is taken for called
  ++depth_;
  const bool called =
      std::ranges::any_of(calls->second, [&](size_t open) { return ++steps_ > kMostSteps || runs(open) != false; });
  --depth_;
  return called;
}

std::optional<bool> PythonValues::runs(size_t at, size_t use) {
  std::optional<bool> all = true;
  if (statements_.empty()) return all;
  const size_t own = statement_of(at);
  if (behind_head(statements_[own].begin, at + 1) <= at && (use >= tokens_.size() || statement_of(use) != own)) {
    all = holds(own);  // "if a: b = 1"
    if (all == false) return all;
  }
  std::set<size_t> around_use;
  if (use < tokens_.size())
    for (size_t here = statement_of(use); around_use.insert(here).second;) here = statements_[here].parent;
  for (size_t here = own; statements_[here].parent != here;) {
    if (returns_before(here)) return false;
    here = statements_[here].parent;
    if (around_use.contains(here)) break;
    const std::optional<bool> one = holds(here);
    if (one == false) return false;
    if (!one) all = std::nullopt;
  }
  return all;
}

// Whether what stands in this statement is run where the statement itself is.
std::optional<bool> PythonValues::holds(size_t statement) {
  using Holds = Statement::Holds;
  Statement& asked = statements_[statement];
  const auto told = [](Holds found) {
    return found == Holds::yes ? std::optional(true) : found == Holds::no ? std::optional(false) : std::nullopt;
  };
  if (asked.holds != Holds::unasked) return told(asked.holds);
  const size_t calls = files_ ? files_->which_calls() : 0;
  if (asked.holds_for_call != Holds::unasked && asked.call == calls) return told(asked.holds_for_call);
  asked.holds = Holds::asked;  // a condition that hangs on itself is unknown
  const int64_t before = files_ ? files_->asked_of_calls() : 0;
  const std::optional<bool> answer = condition(statement);
  const bool of_a_call = files_ && files_->asked_of_calls() != before;  // for another it is asked again
  (of_a_call ? asked.holds_for_call : asked.holds) = !answer ? Holds::unknown : *answer ? Holds::yes : Holds::no;
  if (of_a_call) asked.holds = Holds::unasked;
  asked.call = calls;
  return answer;
}

std::optional<bool> PythonValues::condition(size_t statement) {
  const PythonToken& head = token(statements_[statement].begin);
  if (head.is_word("except")) return false;
  if (head.is_word("def")) return is_called(statement);
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
    if (++steps_ > kMostSteps) return std::nullopt;
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

// What a function of the script returns. Of a method of what is not known only settings: others may have its name.
PythonValue PythonValues::returned(const std::string& path) {
  const std::string function = path.substr(path.rfind('.') + 1);
  PythonValue value = returned_by(function);
  const bool settings = value.kind == PythonValue::Kind::dict || value.kind == PythonValue::Kind::object;
  const std::string owner = path.substr(0, path.find('.'));
  const bool own =
      owner == path || owner == "self" || owner == "cls" || classes_.contains(owner) || origins_.contains(owner);
  return own || settings ? value : PythonValue();
}

// To the call that begins there; what is known is looked up once for all that stand around it.
PythonValue PythonValues::returned_to(size_t open, const std::string& path) {
  if (files_ == nullptr) return returned(path);
  const std::pair asked{open, files_->which_calls()};
  if (const auto before = returned_before_.find(asked); before != returned_before_.end()) {
    if (!files_->calls().empty()) files_->note_asked_of_call();  // it may hang on what they give
    return before->second;
  }
  files_->calls().push_back({path.substr(path.rfind('.') + 1), this, open});
  PythonValue value = returned(path);
  files_->calls().pop_back();
  if (value.known() && returned_before_.size() < kMostReturned) returned_before_.emplace(asked, value);
  return value;
}

// The last of its returns that is known, where others that may be run say nothing else.
PythonValue PythonValues::returned_by(std::string_view function) {
  const auto found = returns_.find(function);
  if (found == returns_.end()) return of_modules([&](PythonValues& values) { return values.returned_by(function); });
  PythonValue last;
  for (const size_t begin : found->second) {
    if (++steps_ > kMostSteps) continue;
    const std::optional<bool> is_run = runs(begin);
    if (is_run == false) continue;
    size_t at = begin;
    PythonValue value = at_depth(&PythonValues::choice, at);
    const bool more = token(at).is(",");  // "return a, b"
    if (more) {
      PythonValue list{.kind = PythonValue::Kind::list, .items = {std::move(value)}};
      while (token(at).is(",") && list.items.size() < 64) list.items.push_back(at_depth(&PythonValues::choice, ++at));
      value = std::move(list);
    }
    const bool empty = !value.known() || truth_of(value) == false;
    if (empty && last.known()) continue;
    if (last.known() && truth_of(last) != false && (last.kind != value.kind || last.text != value.text) &&
        value.kind != PythonValue::Kind::dict && value.kind != PythonValue::Kind::object)
      return {};
    last = std::move(value);
    if (is_run && !empty) break;  // what follows is not reached
  }
  return last;
}

}  // namespace snug::dialects
