#include "chat/expression_parser.h"

#include <algorithm>

namespace snug::chat {

int32_t ExpressionParser::symbol(const std::string& name) {
  const auto [found, added] = symbol_numbers_.emplace(name, static_cast<int32_t>(symbols_.size()));
  if (added) symbols_.push_back(name);
  return found->second;
}

void ExpressionParser::note_unknown(std::string_view kind, const std::string& name) {
  if (!soft) unknown_.push_back({tokens_.current().line, fmt::format("there is no {} {}", kind, quote(name))});
}

void ExpressionParser::refuse_unknown() const {
  if (!unknown_.empty()) tokens_.refuse_at(unknown_[0].line, unknown_[0].what);
}

bool ExpressionParser::read_since(size_t since, std::string_view name) const {
  return std::any_of(names_read_.begin() + static_cast<std::ptrdiff_t>(since), names_read_.end(),
                     [&](const std::string& read) { return read == name; });
}

ExpressionPtr ExpressionParser::make(Type type, const Place& from, std::vector<ExpressionPtr> parts) {
  auto node = std::make_unique<Expression>();
  node->type = type;
  node->place = from;
  node->parts = std::move(parts);
  return finish(std::move(node));
}

// Its end and its depth, now that its parts are there.
ExpressionPtr ExpressionParser::finish(ExpressionPtr node) {
  node->place.end = std::max(node->place.end, tokens_.last_end());
  const auto consider = [&](const ExpressionPtr& part) {
    if (part) node->depth = std::max(node->depth, part->depth + 1);
  };
  for (const auto& part : node->parts) consider(part);
  for (const auto& part : node->arguments.positional) consider(part);
  for (const auto& [name, part] : node->arguments.named) consider(part);
  consider(node->arguments.star);
  consider(node->arguments.star_star);
  if (node->depth > kDeepestExpression) tokens_.refuse("an expression nests too deeply");
  return node;
}

ExpressionPtr ExpressionParser::expression(bool with_condition) {
  const Nesting nesting(nesting_, tokens_);
  return with_condition ? condition() : logical_or();
}

ExpressionPtr ExpressionParser::condition() {
  const Place from = tokens_.place();
  const size_t unknown_before = unknown_.size();
  ExpressionPtr node = logical_or();
  while (tokens_.skip_name("if")) {
    ExpressionPtr test = logical_or();
    ExpressionPtr otherwise;
    if (tokens_.skip_name("else")) {
      const Nesting nesting(nesting_, tokens_);
      otherwise = condition();
    }
    node = make(Type::condition, from, parts_of(std::move(test), std::move(node), std::move(otherwise)));
    unknown_.resize(std::min(unknown_.size(), unknown_before));
  }
  return node;
}

ExpressionPtr ExpressionParser::logical_or() {
  const Place from = tokens_.place();
  ExpressionPtr left = logical_and();
  while (tokens_.skip_name("or")) left = make(Type::logical_or, from, parts_of(std::move(left), logical_and()));
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  const Place from = tokens_.place();
  ExpressionPtr left = logical_not();
  while (tokens_.skip_name("and")) left = make(Type::logical_and, from, parts_of(std::move(left), logical_not()));
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  const Place from = tokens_.place();
  if (!tokens_.skip_name("not")) return compare();
  const Nesting nesting(nesting_, tokens_);
  return make(Type::logical_not, from, parts_of(logical_not()));
}

ExpressionPtr ExpressionParser::compare() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"==", Operator::equal},         {"!=", Operator::unequal}, {"<=", Operator::less_equal},
      {">=", Operator::greater_equal}, {"<", Operator::less},     {">", Operator::greater}};
  auto node = std::make_unique<Expression>();
  node->type = Type::compare;
  node->place = tokens_.place();
  node->parts.push_back(sum());
  for (;;) {
    const auto* found = std::ranges::find_if(kOperators, [&](const auto& entry) { return tokens_.is_op(entry.first); });
    if (found != std::end(kOperators)) {
      tokens_.next();
      node->operators.push_back(found->second);
    } else if (tokens_.skip_name("in")) {
      node->operators.push_back(Operator::in);
    } else if (tokens_.is_name("not") && tokens_.look().type == TokenType::name && tokens_.look().text == "in") {
      tokens_.next();
      tokens_.next();
      node->operators.push_back(Operator::not_in);
    } else {
      break;
    }
    node->parts.push_back(sum());
  }
  return node->operators.empty() ? std::move(node->parts[0]) : finish(std::move(node));
}

// Operands of the rule `next` with `operators` between them, from left to right.
ExpressionPtr ExpressionParser::chain(Rule next, std::initializer_list<std::pair<std::string_view, Operator>> operators) {
  const Place from = tokens_.place();
  ExpressionPtr left = (this->*next)();
  for (;;) {
    const auto* found = std::ranges::find_if(operators, [&](const auto& entry) { return tokens_.is_op(entry.first); });
    if (found == operators.end()) return left;
    tokens_.next();
    left = make(Type::binary, from, parts_of(std::move(left), (this->*next)()));
    left->operators.push_back(found->second);
  }
}

ExpressionPtr ExpressionParser::sum() {
  return chain(&ExpressionParser::concatenation, {{"+", Operator::add}, {"-", Operator::subtract}});
}

ExpressionPtr ExpressionParser::concatenation() {
  const Place from = tokens_.place();
  ExpressionPtr first = product();
  if (!tokens_.is_op("~")) return first;
  std::vector<ExpressionPtr> parts = parts_of(std::move(first));
  while (tokens_.skip_op("~")) parts.push_back(product());
  return make(Type::concatenate, from, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  return chain(
      &ExpressionParser::power,
      {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}});
}

ExpressionPtr ExpressionParser::power() {
  const Place from = tokens_.place();
  ExpressionPtr left = unary();
  while (tokens_.skip_op("**")) {
    left = make(Type::binary, from, parts_of(std::move(left), unary()));
    left->operators.push_back(Operator::power);
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filter) {
  const Nesting nesting(nesting_, tokens_);
  const Place from = tokens_.place();
  ExpressionPtr node;
  if (tokens_.skip_op("-")) {
    node = make(Type::negate, from, parts_of(unary(false)));
  } else if (tokens_.skip_op("+")) {
    node = make(Type::plus, from, parts_of(unary(false)));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filter ? postfix_filters(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::name(bool with_namespace) {
  const Place from = tokens_.place();
  const std::string text = tokens_.next().text;
  ExpressionPtr node = make(Type::constant, from);
  if (text == "true" || text == "True" || text == "false" || text == "False") {
    node->value = Value::boolean(text[0] == 't' || text[0] == 'T');
  } else if (text == "none" || text == "None") {
    node->value = Value::none();
  } else {
    node->symbol = symbol(text);
    node->name = text;
    node->type = Type::name;
    if (with_namespace && tokens_.skip_op(".")) {
      node->type = Type::namespace_attribute;
      node->name = tokens_.expect_any_name();
    }
    names_read_.push_back(text);
  }
  return node;
}

ExpressionPtr ExpressionParser::primary(bool with_namespace) {
  const Place from = tokens_.place();
  switch (tokens_.current().type) {
    case TokenType::name: return name(with_namespace);
    case TokenType::number: {
      ExpressionPtr node = make(Type::constant, from);
      node->value = tokens_.next().value;
      return node;
    }
    case TokenType::string: {
      std::string text;
      while (tokens_.is(TokenType::string)) text += tokens_.next().text;
      ExpressionPtr node = make(Type::constant, from);
      node->value = Value::text(std::move(text));
      return node;
    }
    default: break;
  }
  if (tokens_.skip_op("(")) {
    const Nesting nesting(nesting_, tokens_);
    ExpressionPtr node = tuple(true, {}, true);
    tokens_.expect_op(")");
    return node;
  }
  if (tokens_.is_op("[")) return list();
  if (tokens_.is_op("{")) return dict();
  tokens_.refuse(fmt::format("unexpected {}", tokens_.shown()));
}

bool ExpressionParser::ends_tuple(std::initializer_list<std::string_view> ends) const {
  if (tokens_.is(TokenType::output_end) || tokens_.is(TokenType::tag_end) || tokens_.is_op(")")) return true;
  return std::ranges::any_of(ends, [&](std::string_view end) { return tokens_.is_name(end); });
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, std::initializer_list<std::string_view> ends, bool parentheses) {
  const Place from = tokens_.place();
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) tokens_.expect_op(",");
    if (ends_tuple(ends)) break;
    items.push_back(expression(with_condition));
    if (!tokens_.is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (!is_tuple && !parentheses) tokens_.refuse(fmt::format("an expression should stand before {}", tokens_.shown()));
  return make(Type::tuple, from, std::move(items));
}

ExpressionPtr ExpressionParser::target(bool with_namespace, std::initializer_list<std::string_view> ends) {
  const Place from = tokens_.place();
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) tokens_.expect_op(",");
    if (ends_tuple(ends)) break;
    ExpressionPtr item;
    if (tokens_.skip_op("(")) {
      const Nesting nesting(nesting_, tokens_);
      item = target(with_namespace);
      tokens_.expect_op(")");
    } else if (tokens_.is(TokenType::name)) {
      item = name(with_namespace);
    }
    if (!item || item->type == Type::constant) tokens_.refuse("this cannot be assigned to");
    items.push_back(std::move(item));
    if (!tokens_.is_op(",")) break;
    is_tuple = true;
  }
  if (items.empty()) tokens_.refuse(fmt::format("a name should stand before {}", tokens_.shown()));
  return is_tuple ? make(Type::tuple, from, std::move(items)) : std::move(items[0]);
}

ExpressionPtr ExpressionParser::list() {
  const Place from = tokens_.place();
  tokens_.expect_op("[");
  std::vector<ExpressionPtr> items;
  while (!tokens_.is_op("]")) {
    if (!items.empty()) tokens_.expect_op(",");
    if (tokens_.is_op("]")) break;
    items.push_back(expression());
  }
  tokens_.expect_op("]");
  return make(Type::list, from, std::move(items));
}

ExpressionPtr ExpressionParser::dict() {
  const Place from = tokens_.place();
  tokens_.expect_op("{");
  std::vector<ExpressionPtr> items;
  while (!tokens_.is_op("}")) {
    if (!items.empty()) tokens_.expect_op(",");
    if (tokens_.is_op("}")) break;
    items.push_back(expression());
    tokens_.expect_op(":");
    items.push_back(expression());
  }
  tokens_.expect_op("}");
  return make(Type::dict, from, std::move(items));
}

}  // namespace snug::chat
