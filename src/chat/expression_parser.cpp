#include "chat/expression_parser.h"

#include <algorithm>

#include "chat/builtins.h"

namespace snug::chat {
namespace {

constexpr int kDeepest = 200;  // of a tree, and of brackets in brackets

class Nesting {
 public:
  Nesting(int& depth, const TokenStream& tokens) : depth_(depth) {
    if (++depth_ > kDeepest) {
      --depth_;
      tokens.refuse("the template nests too deeply");
    }
  }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ~Nesting() { --depth_; }

 private:
  int& depth_;
};

template <class... Parts>
std::vector<ExpressionPtr> parts_of(Parts... parts) {
  std::vector<ExpressionPtr> list;
  (list.push_back(std::move(parts)), ...);
  return list;
}

}  // namespace

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
  if (node->depth > kDeepest) tokens_.refuse("an expression nests too deeply");
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
      {"==", Operator::equal},    {"!=", Operator::unequal}, {"<=", Operator::less_equal}, {">=", Operator::greater_equal},
      {"<", Operator::less}, {">", Operator::greater}};
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
  return chain(&ExpressionParser::power, {{"*", Operator::multiply},
                                          {"/", Operator::divide},
                                          {"//", Operator::floor_divide},
                                          {"%", Operator::modulo}});
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
  } else if (!ends && (type == TokenType::name || type == TokenType::string || type == TokenType::number || tokens_.is_op("[") ||
                       tokens_.is_op("{"))) {
    if (tokens_.is_name("is")) tokens_.refuse("tests cannot be chained with 'is'");
    result->arguments.positional.push_back(postfix(primary()));
  }
  result = finish(std::move(result));
  if (!negated) return result;
  return make(Type::logical_not, from, parts_of(ExpressionPtr(std::move(result))));
}

}  // namespace snug::chat
