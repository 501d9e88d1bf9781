#include "recipe/dialects/python_files.h"
#include "recipe/dialects/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;

PythonValue truth(bool value) { return {.kind = Kind::truth, .text = value ? "true" : "false"}; }
PythonValue text_of(std::string text) { return {.kind = Kind::text, .text = std::move(text)}; }

PythonValue number(double value) {
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return {.kind = Kind::number, .text = whole ? fmt::format("{:.0f}", value) : fmt::format("{}", value)};
}

}  // namespace

PythonValue computed(const PythonValue& left, const std::string& sign, const PythonValue& right) {
  constexpr size_t kLongest = 1 << 14;
  if (sign == "+" && left.kind == Kind::text && right.kind == Kind::text)
    return left.text.size() + right.text.size() > kLongest ? PythonValue() : text_of(left.text + right.text);
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

namespace {

// What a command gives may be taken as text: "16", "True".
std::string as_word(const PythonValue& value) {
  return value.kind == Kind::truth ? (value.text == "true" ? "True" : "False") : value.text;
}

bool are_equal(const PythonValue& a, const PythonValue& b) {
  const bool of_command = !a.flag.empty() || !b.flag.empty();
  if (of_command && (a.kind == Kind::text || b.kind == Kind::text)) return lower(as_word(a)) == lower(as_word(b));
  return a.kind == b.kind && a.text == b.text;
}

// "dict[key]", "list[0]"
PythonValue item_of(const PythonValue& value, const PythonValue& key) {
  if (key.kind == Kind::text) {
    const auto member = std::ranges::find(value.members, key.text, &PythonMember::name);
    return member == value.members.end() ? PythonValue() : member->value;
  }
  const std::optional<double> place = value.kind == Kind::list ? number_of(key) : std::nullopt;
  return place && *place >= 0 && *place < static_cast<double>(value.items.size()) ? value.items[static_cast<size_t>(*place)]
                                                                                  : PythonValue();
}

// In all that a list or a dict holds.
size_t count_of_values(const PythonValue& value, size_t most) {
  size_t count = 1;
  for (const PythonValue& item : value.items)
    if (count <= most) count += count_of_values(item, most - count + 1);
  for (const PythonMember& member : value.members)
    if (count <= most) count += count_of_values(member.value, most - count + 1);
  return count;
}

bool closes(const PythonToken& token) { return token.is(")") || token.is("]") || token.is("}"); }

bool ends_expression(const PythonToken& token) {
  return token.kind == PythonKind::line_end || closes(token) || token.is(",") || token.is("=") || token.is(":") ||
         token.is(";") || token.is_word("for");
}

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
    if (const size_t inside = behind_head(begin, end); inside < end) gather_statement(inside, end);
    gather_imports(begin, end);
    gather_loop(begin, end);
    gather_handles(begin, end);
    for (size_t at = begin; at + 2 < end; ++at) {
      if (tokens_[at].is_word("def") && tokens_[at + 2].is("(")) gather_parameters(at);
      const bool named = tokens_[at].kind == PythonKind::name && tokens_[at + 1].is("(");
      const bool defined = at > 0 && (tokens_[at - 1].is_word("def") || tokens_[at - 1].is_word("class"));
      if (named && !defined) calls_[tokens_[at].text].push_back(at + 1);
      const bool option = tokens_[at].is_word("option") && at > 1 && tokens_[at - 2].is_word("click");
      const bool adds = tokens_[at].kind == PythonKind::name && tokens_[at].text.starts_with("add_arg");
      if ((option || adds) && tokens_[at + 1].is("(")) gather_option(at + 1);
      if (named) gather_defaults(at + 1);
    }
    begin = end + 1;
  }
}

// "a = …", "a: int = …", "a = b = …", "a, b = …, …", "a //= …", "a.b = …", 'a["b"] = …'.
void PythonValues::gather_statement(size_t begin, size_t end) {
  constexpr int kMostNames = 64;  // of "a = b = c = …"
  for (int name = 0; name < kMostNames && begin < end && tokens_[begin].kind == PythonKind::name; ++name) {
    gather_part(begin);
    std::vector<size_t> names{begin};
    size_t at = begin + 1;
    while (token(at).is(",") && token(at + 1).kind == PythonKind::name && at + 1 < end) {
      names.push_back(at + 1);
      at += 2;
    }
    if (token(at).is(":") && names.size() == 1) at = behind_annotation(at, end);
    const std::string sign =
        at < end && tokens_[at].text.size() > 1 && tokens_[at].text.ends_with('=') ? tokens_[at].text : "";
    constexpr std::array<std::string_view, 5> kAugments = {"+=", "-=", "*=", "/=", "//="};
    if (names.size() == 1 && std::ranges::find(kAugments, sign) != kAugments.end())
      bindings_[tokens_[begin].text].push_back({.at = begin, .value = at + 1, .sign = sign.substr(0, sign.size() - 1)});
    if (at >= end || !tokens_[at].is("=")) return;
    size_t value = at + 1;
    if (names.size() == 1) {
      bindings_[tokens_[begin].text].push_back({begin, value});
      begin = value;
      continue;
    }
    const bool one_for_all = !token(pass_expression(value)).is(",");  // "a, b = f()"
    for (size_t i = 0; i < names.size(); ++i) {
      Binding binding{.at = names[i], .value = value};
      if (one_for_all) binding.place = i;
      bindings_[tokens_[names[i]].text].push_back(binding);
      if (one_for_all) continue;
      value = pass_expression(value);
      if (!token(value).is(",")) break;
      ++value;
    }
    return;
  }
}

// "a: int = …": where the "=" is.
size_t PythonValues::behind_annotation(size_t colon, size_t end) const {
  size_t at = colon + 1;
  while (at < end && !tokens_[at].is("=")) {
    if (opens(tokens_[at])) {
      pass_brackets(at);
    } else {
      ++at;
    }
  }
  return at;
}

// 'a["b"] = …', "a.b = …"
void PythonValues::gather_part(size_t begin) {
  const bool item = token(begin + 1).is("[") && token(begin + 2).kind == PythonKind::string && token(begin + 3).is("]");
  if (item && token(begin + 4).is("=")) items_[tokens_[begin].text].push_back({begin + 2, begin + 5});
  const bool part = token(begin + 1).is(".") && token(begin + 2).kind == PythonKind::name && token(begin + 3).is("=");
  if (part) parts_[tokens_[begin].text + "." + token(begin + 2).text].push_back({begin, begin + 4});
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
  PythonValue other = at_depth(&PythonValues::choice, at);
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
      value = truth(are_equal(value, other) != negated);
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
    PythonValue right = unary(at);
    const bool path = sign == "/" && right.kind == Kind::text;  // of what is not known, where Python finds the script
    value = !path                      ? computed(value, sign, right)
            : value.kind == Kind::text ? text_of(value.text + "/" + right.text)
                                       : std::move(right);
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
  return hanging_on(std::move(value), at);
}

// 'value["a"]', "value.a", "value.get("a")": what hangs on a value that is no name.
PythonValue PythonValues::hanging_on(PythonValue value, size_t& at) {
  while (token(at).is("(") || token(at).is("[") || token(at).is(".")) {
    if (token(at).is("[")) {
      size_t inside = at + 1;
      const PythonValue key = choice(inside);
      pass_brackets(at);
      value = item_of(value, key);
    } else if (token(at).is(".")) {
      const std::string& name = token(at + 1).text;
      at += 2;
      const size_t open = at;
      if (token(open).is("(")) pass_brackets(at);
      value = token(open).is("(") ? method(value, name, open) : part_of(value, name);
    } else {
      value = {};
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
    known = known && list.items.back().known() && list.items.size() <= kMostValues;
    if (!token(at).is(",")) break;
    comma = true;
    ++at;
  }
  const bool whole = token(at).is(close);
  at = open;
  pass_brackets(at);
  if (!whole) return {};
  if (close == ")" && !comma && list.items.size() == 1) return list.items.front();
  return known && count_of_values(list, kMostValues) <= kMostValues ? list : PythonValue();
}

PythonValue PythonValues::members(size_t& at) {
  const size_t open = at++;
  if (token(at).kind == PythonKind::name && token(at + 1).is(":") && token(at + 3).is_word("for")) {
    pass_brackets(at = open);
    return kept(open);
  }
  PythonValue dict{.kind = Kind::dict};
  bool spreads = false;
  const auto put = [&](PythonMember member) {  // what stands later holds
    if (spreads) steps_ += static_cast<int64_t>(dict.members.size());
    if (spreads) std::erase_if(dict.members, [&](const PythonMember& one) { return one.name == member.name; });
    dict.members.push_back(std::move(member));
  };
  while (at < tokens_.size() && !token(at).is("}") && steps_ <= kMostSteps) {
    if (token(at).is("**")) {
      PythonValue spread = choice(++at);
      if (spread.kind != Kind::dict) break;
      spreads = true;
      for (PythonMember& member : spread.members)
        if (steps_ <= kMostSteps) put(std::move(member));
    } else {
      const PythonValue key = choice(at);
      if (key.kind != Kind::text || !token(at).is(":")) break;
      ++at;
      put({key.text, choice(at)});
    }
    if (!token(at).is(",")) break;
    ++at;
  }
  const bool whole = token(at).is("}");
  at = open;
  pass_brackets(at);
  return whole && count_of_values(dict, kMostValues) <= kMostValues ? dict : PythonValue();
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
  if (path == "sys.argv" && token(at + 1).kind == PythonKind::number && token(at + 2).is("]") &&
      token(at + 1).text.size() == 1) {
    at += 3;  // the script's own name is the first
    return token(at - 2).text == "0" ? PythonValue()
                                     : word(static_cast<size_t>(token(at - 2).text[0] - '1')).value_or(PythonValue());
  }
  if (path.ends_with("environ") && token(at).is("[") && token(at + 1).kind == PythonKind::string) {
    const size_t of = at + 1;
    pass_brackets(at);
    return variable(token(of).text);
  }
  PythonValue value = path.find('.') == std::string::npos ? of_name(path, begin) : of_attribute(path, begin);
  return token(at).is("[") ? hanging_on(std::move(value), at) : value;
}

}  // namespace snug::dialects
