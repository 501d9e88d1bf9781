// Expressions: how an Interpreter finds their values.

#include <fmt/format.h>

#include "base/quote.h"
#include "chat/attributes.h"
#include "chat/filters.h"
#include "chat/globals.h"
#include "chat/interpreter.h"
#include "chat/operators.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

constexpr int kDeepest = 500;

}  // namespace

Value Interpreter::evaluate(const Expression& node) {
  spend(1);
  if (node.type == Expression::Type::constant) return node.value;
  if (node.type == Expression::Type::name) return name(node);
  if (++depth_ > kDeepest) {
    --depth_;
    throw Error("the template calls itself too deeply");
  }
  struct Leave {
    int& depth;
    ~Leave() { --depth; }
  } const leave{depth_};
  return evaluate_parts(node);
}

Value Interpreter::evaluate_parts(const Expression& node) {
  using Type = Expression::Type;
  const auto part = [&](size_t i) { return evaluate(*node.parts[i]); };
  const auto here = [&]() { site_ = &node.place; };
  switch (node.type) {
    case Type::attribute: {
      const Value object = part(0);
      here();
      return get_attribute(object, node.name);
    }
    case Type::item: return item(node);
    case Type::slice: return slice(node);
    case Type::list: return Value::list(values(node.parts));
    case Type::tuple: return Value::tuple(values(node.parts));
    case Type::dict: return dict(node);
    case Type::call: return call(node, nullptr);
    case Type::filter: return filter(node, nullptr);
    case Type::test: {
      const Value value = part(0);
      CallArguments given = arguments(node.arguments);
      here();
      return Value::boolean(apply_test(*this, node.name, value, given));
    }
    case Type::negate: {
      const Value value = part(0);
      here();
      return negate(value);
    }
    case Type::plus: {
      const Value value = part(0);
      here();
      return plus(value);
    }
    case Type::binary: {
      const Value left = part(0);
      const Value right = part(1);
      here();
      return apply_binary(node.operators[0], left, right);
    }
    case Type::concatenate: return concatenate(node);
    case Type::compare: return compare(node);
    case Type::logical_and: {
      Value left = part(0);
      return truth(left) ? part(1) : left;
    }
    case Type::logical_or: {
      Value left = part(0);
      return truth(left) ? left : part(1);
    }
    case Type::logical_not: return Value::boolean(!truth(part(0)));
    case Type::condition:
      if (truth(part(0))) return part(1);
      if (node.parts[2]) return part(2);
      return Value::undefined("an inline if without else has no value");
    default: return {};
  }
}

Value Interpreter::name(const Expression& node) {
  if (const Value* found = scope_->find(node.symbol)) return *found;
  if (const Value* found = rendering_.variables.find(node.name)) return *found;
  if (auto found = global_function(node.name)) return *std::move(found);
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

Value Interpreter::item(const Expression& node) {
  const Value object = evaluate(*node.parts[0]);
  const Value key = evaluate(*node.parts[1]);
  site_ = &node.place;
  return get_item(object, key);
}

Value Interpreter::slice(const Expression& node) {
  const auto bound = [&](size_t i) { return node.parts[i] ? evaluate(*node.parts[i]) : Value::none(); };
  const Value object = evaluate(*node.parts[0]);
  const Value begin = bound(1);
  const Value end = bound(2);
  const Value step = bound(3);
  site_ = &node.place;
  return get_slice(object, begin, end, step);
}

Value Interpreter::dict(const Expression& node) {
  Dict entries;
  for (size_t i = 0; i + 1 < node.parts.size(); i += 2) {
    Value key = evaluate(*node.parts[i]);
    Value value = evaluate(*node.parts[i + 1]);
    site_ = &node.place;
    entries.set(std::move(key), std::move(value));
  }
  return Value::dict(std::move(entries));
}

std::vector<Value> Interpreter::values(const std::vector<ExpressionPtr>& parts) {
  std::vector<Value> result;
  result.reserve(parts.size());
  for (const auto& part : parts) result.push_back(evaluate(*part));
  return result;
}

CallArguments Interpreter::arguments(const Arguments& given) {
  CallArguments result;
  result.positional = values(given.positional);
  for (const auto& [name, value] : given.named) result.named.emplace_back(name, evaluate(*value));
  if (given.star) {
    const SequenceRef more = iterate(evaluate(*given.star));
    result.positional.insert(result.positional.end(), more->items.begin(), more->items.end());
  }
  if (given.star_star) {
    const Value more = evaluate(*given.star_star);
    if (!more.is(Kind::dict)) throw Error("what stands after ** must be a dict");
    for (const auto& [key, value] : more.dict()->entries()) {
      if (!key.is_string()) throw Error("keywords must be strings");
      if (result.named.size() >= kMostNamed) throw Error("a call has more than 1000 named arguments");
      result.named.emplace_back(key.text()->bytes(), value);
    }
  }
  return result;
}

Value Interpreter::call(const Expression& node, const Value* caller) {
  const Expression& callee = *node.parts[0];
  if (callee.type == Expression::Type::attribute) {  // a method, without making it a value first
    const Value object = evaluate(*callee.parts[0]);
    if (const Method method = object.is(Kind::object) ? nullptr : find_method(object, callee.name); method != nullptr) {
      CallArguments given = arguments(node.arguments);
      site_ = &node.place;
      return method(*this, object, given);
    }
    site_ = &callee.place;
    const Value function = get_attribute(object, callee.name);
    CallArguments given = arguments(node.arguments);
    if (caller != nullptr) given.named.emplace_back("caller", *caller);
    site_ = &node.place;
    return call(function, given);
  }
  const Value function = evaluate(callee);
  CallArguments given = arguments(node.arguments);
  if (caller != nullptr) given.named.emplace_back("caller", *caller);
  site_ = &node.place;
  return call(function, given);
}

Value Interpreter::call(const Value& callee, CallArguments& arguments) {
  if (callee.is_undefined()) refuse_undefined(callee);
  const ObjectRef held = callee.is(Kind::object) ? callee.object() : nullptr;  // the call itself may let go of it
  auto* function = dynamic_cast<Callable*>(held.get());
  if (function == nullptr) throw Error(fmt::format("'{}' object is not callable", type_name(callee)));
  return function->call(*this, arguments);
}

// In blocks the innermost filter of a chain has no operand of its own: it takes `block`.
Value Interpreter::filter(const Expression& node, const Value* block) {
  const Expression* operand = node.parts[0].get();
  Value input = operand == nullptr ? *block : block != nullptr ? filter(*operand, block) : evaluate(*operand);
  CallArguments given = arguments(node.arguments);
  site_ = &node.place;
  return apply_filter(*this, node.name, input, given);
}

Value Interpreter::concatenate(const Expression& node) {
  TextBuilder builder;
  for (const auto& part : node.parts) {
    const Value value = evaluate(*part);
    site_ = &node.place;
    write_str(builder, value);
  }
  return Value::text(builder.take());
}

Value Interpreter::compare(const Expression& node) {
  Value left = evaluate(*node.parts[0]);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1]);
    site_ = &node.place;
    if (!apply_comparison(node.operators[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

}  // namespace snug::chat
