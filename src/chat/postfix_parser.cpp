// What may stand behind an expression: attributes, indexes, calls, filters and tests.

#include <algorithm>

#include "chat/builtins.h"
#include "chat/callable.h"
#include "chat/expression_parser.h"

namespace snug::chat {

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  for (;;) {
    if (tokens_.is_op(".") || tokens_.is_op("[")) {
      node = subscript(std::move(node));
    } else if (tokens_.is_op("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::postfix_filters(ExpressionPtr node) {
  for (;;) {
    if (tokens_.is_op("|")) {
      node = filters(std::move(node));
    } else if (tokens_.is_name("is")) {
      node = test(std::move(node));
    } else if (tokens_.is_op("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const Place from = node->place;
  if (tokens_.skip_op(".")) {
    if (tokens_.is(TokenType::number) && tokens_.current().value.is(Kind::integer)) {
      ExpressionPtr index = make(Type::constant, tokens_.place());
      index->value = tokens_.next().value;
      return make(Type::item, from, parts_of(std::move(node), std::move(index)));
    }
    const std::string attribute = tokens_.expect_any_name();
    node = make(Type::attribute, from, parts_of(std::move(node)));
    node->name = attribute;
    return node;
  }
  tokens_.expect_op("[");
  std::vector<ExpressionPtr> keys;
  while (!tokens_.is_op("]")) {
    if (!keys.empty()) tokens_.expect_op(",");
    keys.push_back(subscribed());
  }
  tokens_.expect_op("]");
  if (keys.size() == 1 && keys[0]->type == Type::slice) {
    keys[0]->parts[0] = std::move(node);
    keys[0]->place = from;
    return finish(std::move(keys[0]));
  }
  const bool sliced = std::ranges::any_of(keys, [](const auto& key) { return key->type == Type::slice; });
  if (sliced) tokens_.refuse("a slice stands in a list of indexes");
  ExpressionPtr key = keys.size() == 1 ? std::move(keys[0]) : make(Type::tuple, from, std::move(keys));
  return make(Type::item, from, parts_of(std::move(node), std::move(key)));
}

// One index, or a slice whose first part is still missing.
ExpressionPtr ExpressionParser::subscribed() {
  const Place from = tokens_.place();
  std::vector<ExpressionPtr> parts(4);
  if (!tokens_.is_op(":")) {
    parts[1] = expression();
    if (!tokens_.is_op(":")) return std::move(parts[1]);
  }
  const auto ends = [&] { return tokens_.is_op(":") || tokens_.is_op("]") || tokens_.is_op(","); };
  tokens_.expect_op(":");
  if (!ends()) parts[2] = expression();
  if (tokens_.skip_op(":") && !ends()) parts[3] = expression();
  return make(Type::slice, from, std::move(parts));
}

void ExpressionParser::argument(Arguments& arguments, bool& named_seen) {
  const auto ensure = [&](bool right) {
    if (!right) tokens_.refuse("the arguments of a call are out of order");
  };
  if (tokens_.skip_op("*")) {
    ensure(!arguments.star && !arguments.star_star);
    arguments.star = expression();
  } else if (tokens_.skip_op("**")) {
    ensure(!arguments.star_star);
    arguments.star_star = expression();
  } else if (tokens_.is(TokenType::name) && tokens_.look().type == TokenType::op && tokens_.look().text == "=") {
    ensure(!arguments.star_star);
    std::string key = tokens_.next().text;
    tokens_.next();
    for (const auto& [name, value] : arguments.named)
      if (name == key) tokens_.refuse(fmt::format("the argument {} is given twice", quote(key)));
    if (arguments.named.size() >= kMostNamed) tokens_.refuse("a call has more than 1000 named arguments");
    arguments.named.emplace_back(std::move(key), expression());
    named_seen = true;
  } else {
    ensure(!arguments.star && !arguments.star_star && !named_seen);
    arguments.positional.push_back(expression());
  }
}

Arguments ExpressionParser::arguments() {
  Arguments arguments;
  bool named_seen = false;
  tokens_.expect_op("(");
  for (bool first = true; !tokens_.is_op(")"); first = false) {
    if (!first) {
      tokens_.expect_op(",");
      if (tokens_.is_op(")")) break;
    }
    argument(arguments, named_seen);
  }
  tokens_.expect_op(")");
  return arguments;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  auto result = std::make_unique<Expression>();
  result->type = Type::call;
  result->place = node->place;
  result->parts.push_back(std::move(node));
  result->arguments = arguments();
  return finish(std::move(result));
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_any_name();
  while (tokens_.skip_op(".")) name += "." + tokens_.expect_any_name();
  return name;
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value, bool inside) {
  const Place from = value ? value->place : tokens_.place();
  while (inside || tokens_.is_op("|")) {
    if (!inside) tokens_.next();
    inside = false;
    auto node = std::make_unique<Expression>();
    node->type = Type::filter;
    node->place = from;
    node->name = dotted_name();
    if (!is_filter(node->name)) note_unknown("filter", node->name);
    if (tokens_.is_op("(")) node->arguments = arguments();
    node->parts.push_back(std::move(value));
    value = finish(std::move(node));
  }
  return value;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr node) {
  const Place from = node->place;
  tokens_.next();
  const bool negated = tokens_.skip_name("not");
  auto result = std::make_unique<Expression>();
  result->type = Type::test;
  result->place = from;
  result->name = dotted_name();
  if (!is_test(result->name)) note_unknown("test", result->name);
  result->parts.push_back(std::move(node));
  const bool ends = tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and");
  const TokenType type = tokens_.current().type;
  if (tokens_.is_op("(")) {
    result->arguments = arguments();
  } else if (!ends && (type == TokenType::name || type == TokenType::string || type == TokenType::number ||
                       tokens_.is_op("[") || tokens_.is_op("{"))) {
    if (tokens_.is_name("is")) tokens_.refuse("tests cannot be chained with 'is'");
    result->arguments.positional.push_back(postfix(primary()));
  }
  result = finish(std::move(result));
  if (!negated) return result;
  return make(Type::logical_not, from, parts_of(ExpressionPtr(std::move(result))));
}

}  // namespace snug::chat
