#include "recipe/dialects/python_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;

PythonValue truth(bool value) { return {.kind = Kind::truth, .text = value ? "true" : "false"}; }
PythonValue text_of(std::string text) { return {.kind = Kind::text, .text = std::move(text)}; }

PythonValue number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return {.kind = Kind::number, .text = whole ? fmt::format("{:.0f}", value) : fmt::format("{}", value)};
}

PythonValue computed(const PythonValue& left, const std::string& sign, const PythonValue& right) {
  if (sign == "+" && left.kind == Kind::text && right.kind == Kind::text) return text_of(left.text + right.text);
  const std::optional<double> a = number_of(left), b = number_of(right);
  if (!a || !b) return {};
  if (sign == "+") return number(*a + *b);
  if (sign == "-") return number(*a - *b);
  if (sign == "*") return number(*a * *b);
  if (sign == "**") return number(std::pow(*a, *b));
  if (*b == 0) return {};
  if (sign == "/") return number(*a / *b);
  if (sign == "//") return number(std::floor(*a / *b));
  return number(*a - std::floor(*a / *b) * *b);
}

bool closes(const PythonToken& token) { return token.is(")") || token.is("]") || token.is("}"); }

bool ends_expression(const PythonToken& token) {
  return token.kind == PythonKind::line_end || closes(token) || token.is(",") || token.is("=") || token.is(":") ||
         token.is(";") || token.is_word("for");
}

// "model.name" of a dict of dicts.
PythonValue member_of(const PythonValue& dict, std::string_view path) {
  const auto member = std::ranges::find(dict.members, path.substr(0, path.find('.')), &PythonMember::name);
  if (member == dict.members.end()) return {};
  return path.find('.') == std::string_view::npos ? member->value
                                                  : member_of(member->value, path.substr(path.find('.') + 1));
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

PythonValues::PythonValues(const std::vector<PythonToken>& tokens, PythonFiles* files)
    : tokens_(tokens), files_(files), behind_(tokens.size(), tokens.size()) {
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (opens(tokens[at])) open.push_back(at);
    if (!closes(tokens[at]) || open.empty()) continue;
    behind_[open.back()] = at + 1;
    open.pop_back();
  }
  if (files_ != nullptr) files_->everybody().push_back(this);
  gather_blocks();
  gather();
}

const PythonToken& PythonValues::token(size_t at) const {
  static const PythonToken kBehindAll{.kind = PythonKind::line_end, .text = {}, .span = {}};
  return at < tokens_.size() ? tokens_[at] : kBehindAll;
}

void PythonValues::pass_brackets(size_t& at) const { at = behind_[at]; }

// Behind all that belongs to the expression at `at`.
size_t PythonValues::pass_expression(size_t at) const {
  while (at < tokens_.size()) {
    const PythonToken& here = tokens_[at];
    if (here.kind == PythonKind::line_end || closes(here) || here.is(",")) break;
    if (opens(here)) {
      pass_brackets(at);
    } else {
      ++at;
    }
  }
  return at;
}

// ---- Names

void PythonValues::gather() {
  for (size_t begin = 0; begin < tokens_.size();) {
    size_t end = begin;
    while (end < tokens_.size() && tokens_[end].kind != PythonKind::line_end) ++end;
    gather_statement(begin, end);
    gather_imports(begin, end);
    gather_loop(begin, end);
    for (size_t at = begin; at + 2 < end; ++at) {
      if (tokens_[at].is_word("def") && tokens_[at + 2].is("(")) gather_parameters(at);
      const bool called = tokens_[at].kind == PythonKind::name && tokens_[at + 1].is("(");
      if (called && (at == 0 || !tokens_[at - 1].is_word("def"))) calls_[tokens_[at].text].push_back(at + 1);
      if (called && tokens_[at].text == "open" && token(behind_[at + 1]).is_word("as"))
        handles_[token(behind_[at + 1] + 1).text] = at + 2;
      const bool option = tokens_[at].is_word("option") && at > 1 && tokens_[at - 2].is_word("click");
      const bool adds = tokens_[at].kind == PythonKind::name && tokens_[at].text.starts_with("add_arg");
      if ((option || adds) && tokens_[at + 1].is("(")) gather_option(at + 1);
    }
    begin = end + 1;
  }
}

// "a = …", "a: int = …", "a = b = …", "a, b = …, …".
void PythonValues::gather_statement(size_t begin, size_t end) {
  if (begin >= end || tokens_[begin].kind != PythonKind::name) return;
  const bool item = token(begin + 1).is("[") && token(begin + 2).kind == PythonKind::string && token(begin + 3).is("]");
  if (item && token(begin + 4).is("=")) items_[tokens_[begin].text].push_back({begin + 2, begin + 5});
  std::vector<size_t> names{begin};
  size_t at = begin + 1;
  while (token(at).is(",") && token(at + 1).kind == PythonKind::name && at + 1 < end) {
    names.push_back(at + 1);
    at += 2;
  }
  if (token(at).is(":") && names.size() == 1) {  // an annotation
    ++at;
    while (at < end && !tokens_[at].is("=")) {
      if (opens(tokens_[at])) {
        pass_brackets(at);
      } else {
        ++at;
      }
    }
  }
  if (at >= end || !tokens_[at].is("=")) return;
  size_t value = at + 1;
  if (names.size() == 1) {
    bindings_[tokens_[begin].text].push_back({begin, value});
    return gather_statement(value, end);
  }
  for (size_t name : names) {
    bindings_[tokens_[name].text].push_back({name, value});
    value = pass_expression(value);
    if (!token(value).is(",")) break;
    ++value;
  }
}

// The last binding before `at`, else the first after it: functions stand above what they use.
PythonValue PythonValues::of_name(const std::string& name, size_t at) {
  if (name == "__name__") return text_of("__main__");
  const auto found = bindings_.find(name);
  const auto imported = [&]() {
    const auto other = renamed_.find(name);  // "from conf import BASE as MODEL"
    return of_modules([&](PythonValues& values) { return values.bound(other == renamed_.end() ? name : other->second); });
  };
  if (found == bindings_.end()) return imported();
  const Binding* const bound = binding_of(found->second, at);
  if (bound == nullptr || (bound->value <= at && at < pass_expression(bound->value))) return imported();
  PythonValue value = worth(*bound);
  if (const auto items = items_.find(name); items != items_.end() && value.kind == Kind::dict)
    for (const Binding& item : items->second) {
      if (item.at < bound->at || item.at > at) continue;
      size_t item_at = item.value;
      value.members.push_back({tokens_[item.at].text, at_depth(&PythonValues::choice, item_at)});
    }
  return value;
}

// The last before `at`, or the first of all; none where only Python knows which of several it is.
const PythonValues::Binding* PythonValues::binding_of(const std::vector<Binding>& all, size_t at) {
  const Binding* bound = nullptr;
  bool certain = true;
  const auto same = [this](const Binding& a, const Binding& b) {
    const PythonValue one = worth(a), other = worth(b);
    return one.kind == other.kind && one.text == other.text && one.items.empty() && one.members.empty();
  };
  for (const Binding& binding : all) {
    if (bound != nullptr && binding.at >= at) break;
    if (binding.until != 0 && (at < binding.from || at >= binding.until)) continue;
    if (binding.to == Bound::parameter && asked_.contains(binding.parameter))
      continue;  // f(name=name): another of that name
    const bool of_itself = binding.to == Bound::value && binding.value <= at && at < pass_expression(binding.value);
    if (of_itself) continue;  // "a = a // 2": of what it was before
    const std::optional<bool> is_run = runs(binding.at, at);
    if (is_run == false) continue;
    certain = is_run.has_value() || bound == nullptr || (certain && same(*bound, binding));
    bound = &binding;
  }
  return certain ? bound : nullptr;
}

// args.name, self.name, CFG.name: what the command gives, else an option's default, else what the name is bound to anywhere,
// else the default that another file's parser has.
PythonValue PythonValues::of_attribute(const std::string& path, size_t at) {
  const std::string name(last_of(path));
  if (path.starts_with("torch.")) return path.find('.', 6) == std::string::npos ? text_of(name) : PythonValue();
  if (std::optional<PythonValue> given = flag(name)) return *given;
  if (const std::optional<PythonValue> option = option_default(name)) return *option;
  const size_t dot = path.find('.');
  if (dot != std::string::npos)
    if (PythonValue member = member_of(of_name(path.substr(0, dot), at), path.substr(dot + 1)); member.known())
      return member;
  PythonValue value = of_name(name, at);
  if (value.known() || dot == std::string::npos || files_ == nullptr || !files_->enter()) return value;
  for (PythonValues* const other : files_->everybody())
    if (const std::optional<PythonValue> option = other == this ? std::nullopt : other->option_default(name)) {
      value = *option;
      value.literal = false;
      break;
    }
  files_->leave();
  return value;
}

// ---- Expressions

// One level further down; unknown where that is too deep, or too much in all.
PythonValue PythonValues::at_depth(PythonValue (PythonValues::*read)(size_t&), size_t& at) {
  if (depth_ >= kDeepestExpression || ++steps_ > kMostSteps) return {};
  ++depth_;
  PythonValue value = (this->*read)(at);
  --depth_;
  return value;
}

PythonValue PythonValues::value(size_t& at) {
  const size_t begin = at;
  PythonValue value = choice(at);
  if (!ends_expression(token(at))) value = {};  // more than is read here
  at = pass_expression(begin);
  return value;
}

size_t PythonValues::chosen(size_t at) {
  const size_t first = at;
  disjunction(at);
  if (!token(at).is_word("if")) return first;
  ++at;
  const std::optional<bool> holds = truth_of(disjunction(at));
  return holds == false && token(at).is_word("else") ? at + 1 : first;
}

PythonValue PythonValues::choice(size_t& at) {
  PythonValue value = disjunction(at);
  if (!token(at).is_word("if")) return value;
  ++at;
  const std::optional<bool> holds = truth_of(disjunction(at));
  if (!token(at).is_word("else")) return {};
  ++at;
  PythonValue other = choice(at);
  if (!holds)
    return value.known() && value.kind == other.kind && value.text == other.text && value.items.empty() ? value
                                                                                                        : PythonValue();
  return *holds ? value : other;
}

PythonValue PythonValues::disjunction(size_t& at) {
  PythonValue value = inversion(at);
  while (token(at).is_word("or") || token(at).is_word("and")) {
    const bool stops_at = token(at).is_word("or");
    ++at;
    PythonValue next = inversion(at);
    const std::optional<bool> so_far = truth_of(value);
    if (!so_far) {
      value = {};
    } else if (*so_far != stops_at) {
      value = std::move(next);
    }
  }
  return value;
}

PythonValue PythonValues::inversion(size_t& at) {
  if (!token(at).is_word("not")) return comparison(at);
  ++at;
  const std::optional<bool> value = truth_of(at_depth(&PythonValues::inversion, at));
  return value ? truth(!*value) : PythonValue();
}

PythonValue PythonValues::comparison(size_t& at) {
  PythonValue value = sum(at);
  while (true) {
    const PythonToken& sign = token(at);
    const bool is = sign.is_word("is"), in = sign.is_word("in");
    const bool compares =
        is || in || sign.is("==") || sign.is("!=") || sign.is("<") || sign.is(">") || sign.is("<=") || sign.is(">=");
    const bool not_in = sign.is_word("not") && token(at + 1).is_word("in");
    if (!compares && !not_in) return value;
    at += not_in || (is && token(at + 1).is_word("not")) ? 2 : 1;
    const bool negated = sign.is("!=") || token(at - 1).is_word("not");
    const PythonValue other = sum(at);
    const std::optional<double> a = number_of(value), b = number_of(other);
    const bool both = value.known() && other.known();
    const bool within = in || not_in;
    if (within && value.kind == Kind::text && other.kind == Kind::text) {
      value = truth((other.text.find(value.text) != std::string::npos) != not_in);
    } else if (within && both && other.kind == Kind::list) {
      value = truth((std::ranges::find(other.items, value.text, &PythonValue::text) != other.items.end()) != not_in);
    } else if (both && (sign.is("==") || sign.is("!=") || is)) {
      value = truth((value.kind == other.kind && value.text == other.text) != negated);
    } else if (a && b && !in && !not_in) {
      value = truth(sign.is("<") ? *a < *b : sign.is(">") ? *a > *b : sign.is("<=") ? *a <= *b : *a >= *b);
    } else {
      value = {};
    }
  }
}

PythonValue PythonValues::sum(size_t& at) {
  PythonValue value = product(at);
  while (token(at).is("+") || token(at).is("-")) {
    const std::string sign = token(at++).text;
    value = computed(value, sign, product(at));
  }
  return value;
}

PythonValue PythonValues::product(size_t& at) {
  PythonValue value = unary(at);
  while (token(at).is("*") || token(at).is("/") || token(at).is("//") || token(at).is("%")) {
    const std::string sign = token(at++).text;
    value = computed(value, sign, unary(at));
  }
  return value;
}

PythonValue PythonValues::unary(size_t& at) {
  if (token(at).is("-") || token(at).is("+")) {
    const bool minus = token(at++).is("-");
    const std::optional<double> value = number_of(at_depth(&PythonValues::unary, at));
    return value ? number(minus ? -*value : *value) : PythonValue();
  }
  PythonValue value = at_depth(&PythonValues::primary, at);
  if (!token(at).is("**")) return value;
  ++at;
  return computed(value, "**", at_depth(&PythonValues::unary, at));
}

PythonValue PythonValues::primary(size_t& at) {
  const PythonToken& here = token(at);
  PythonValue value;
  if (here.kind == PythonKind::string) {
    value = strings(at);
  } else if (here.kind == PythonKind::number) {
    value = {.kind = Kind::number, .text = here.text, .span = here.span, .literal = true};
    if (!number_of(value)) value = {};
    ++at;
  } else if (here.kind == PythonKind::name) {
    value = chain(at);
  } else if (here.is("(") || here.is("[")) {
    value = items(at, here.is("(") ? ")" : "]");
  } else if (here.is("{")) {
    value = members(at);
  }
  while (token(at).is("(") || token(at).is("[") || token(at).is(".")) {  // of what is not a name
    if (value.kind == Kind::text && token(at).is(".") && token(at + 1).is_word("format") && token(at + 2).is("(")) {
      value = filled_in(value.text, at + 2);
      at = behind_[at + 2];
      continue;
    }
    value = {};
    if (token(at).is(".")) {
      at += 2;
    } else {
      pass_brackets(at);
    }
  }
  return value;
}

PythonValue PythonValues::strings(size_t& at) {
  PythonValue value{.kind = Kind::text, .span = token(at).span, .literal = true};
  bool known = true;
  for (size_t count = 0; token(at).kind == PythonKind::string; ++at, ++count) {
    const PythonValue part = token(at).exact ? text_of(token(at).text) : filled(token(at));
    value.text += part.text;
    known = known && part.known();
    value.literal = count == 0 && token(at).exact;
  }
  return known ? value : PythonValue();
}

// A list or tuple; "(x)" is x.
PythonValue PythonValues::items(size_t& at, std::string_view close) {
  const size_t open = at++;
  PythonValue list{.kind = Kind::list};
  bool comma = false, known = true;
  while (at < tokens_.size() && !token(at).is(close)) {
    list.items.push_back(choice(at));
    known = known && list.items.back().known();
    if (!token(at).is(",")) break;
    comma = true;
    ++at;
  }
  const bool whole = token(at).is(close);
  at = open;
  pass_brackets(at);
  if (!whole) return {};
  if (close == ")" && !comma && list.items.size() == 1) return list.items.front();
  return known ? list : PythonValue();
}

PythonValue PythonValues::members(size_t& at) {
  const size_t open = at++;
  PythonValue dict{.kind = Kind::dict};
  while (at < tokens_.size() && !token(at).is("}")) {
    const PythonValue key = choice(at);
    if (key.kind != Kind::text || !token(at).is(":")) break;
    ++at;
    dict.members.push_back({key.text, choice(at)});
    if (!token(at).is(",")) break;
    ++at;
  }
  const bool whole = token(at).is("}");
  at = open;
  pass_brackets(at);
  return whole ? dict : PythonValue();
}

// A name with what hangs on it: a.b, a.b(…), a["b"].
PythonValue PythonValues::chain(size_t& at) {
  const size_t begin = at;
  std::string path = token(at++).text;
  if (path == "True" || path == "False")
    return {.kind = Kind::truth, .text = path == "True" ? "true" : "false", .span = token(begin).span, .literal = true};
  if (path == "None") return {.kind = Kind::none, .text = {}, .span = token(begin).span, .literal = true};
  if (path == "lambda") return {};
  while (token(at).is(".") && token(at + 1).kind == PythonKind::name) {
    path += "." + token(at + 1).text;
    at += 2;
  }
  if (token(at).is("(")) return call(path, at);
  if (path.ends_with("environ") && token(at).is("[") && token(at + 1).kind == PythonKind::string) {
    const size_t of = at + 1;
    pass_brackets(at);
    return variable(token(of).text);
  }
  PythonValue value = path.find('.') == std::string::npos ? of_name(path, begin) : of_attribute(path, begin);
  while (token(at).is("[")) {
    size_t inside = at + 1;
    const PythonValue key = choice(inside);
    pass_brackets(at);
    const auto member = std::ranges::find(value.members, key.text, &PythonMember::name);
    value = key.kind == Kind::text && member != value.members.end() ? PythonValue(member->value) : PythonValue();
  }
  return value;
}

}  // namespace snug::dialects
