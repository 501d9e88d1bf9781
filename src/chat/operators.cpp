#include "chat/operators.h"

#include <fmt/format.h>

#include <cmath>

#include "chat/format.h"
#include "chat/markup.h"

namespace snug::chat {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void refuse_types(Operator op, const Value& a, const Value& b) {
  throw Error(
      fmt::format("'{}' cannot be applied to '{}' and '{}'", kSigns[static_cast<size_t>(op)], type_name(a), type_name(b)));
}

[[noreturn]] void overflow() { throw Error("a whole number does not fit in 63 bits"); }

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return result;
}

Value real_result(Operator op, double a, double b) {
  switch (op) {
    case Operator::add: return Value::real(a + b);
    case Operator::subtract: return Value::real(a - b);
    case Operator::multiply: return Value::real(a * b);
    case Operator::power: {
      if (a == 0.0 && b < 0.0) throw Error("0.0 cannot be raised to a negative power");
      if (a < 0.0 && b != std::floor(b)) throw Error("complex numbers are not supported");
      const double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) throw Error("a number is too large");
      return Value::real(result);
    }
    default: break;
  }
  if (b == 0.0) throw Error("division by zero");
  if (op == Operator::divide) return Value::real(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0.0 && (rest < 0.0) != (b < 0.0)) rest += b;
  if (op == Operator::modulo) return Value::real(rest == 0.0 ? std::copysign(0.0, b) : rest);
  const double quotient = (a - rest) / b;
  const double floored = std::floor(quotient);
  return Value::real(quotient - floored > 0.5 ? floored + 1.0 : floored);
}

Value integer_result(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool too_large = false;
  switch (op) {
    case Operator::add: too_large = __builtin_add_overflow(a, b, &result); break;
    case Operator::subtract: too_large = __builtin_sub_overflow(a, b, &result); break;
    case Operator::multiply: too_large = __builtin_mul_overflow(a, b, &result); break;
    case Operator::power:
      if (b < 0) return real_result(op, static_cast<double>(a), static_cast<double>(b));
      result = integer_power(a, b);
      break;
    case Operator::divide:
      if (b == 0) throw Error("division by zero");
      return Value::real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    default:
      if (b == 0) throw Error("division by zero");
      result = op == Operator::modulo ? floor_modulo(a, b) : floor_divide(a, b);
  }
  if (too_large) overflow();
  return Value::integer(result);
}

Value repeat(const Value& value, int64_t times) {
  if (value.is_string()) {
    const Text& text = *value.text();
    if (text.size() > 0 && times > Meter::kMostBytes / text.size())
      throw Error("the template makes more than 64 MiB of text");
    TextBuilder builder;
    if (text.runs().empty()) {
      std::string bytes;
      for (int64_t i = 0; i < times && text.size() > 0; ++i) bytes += text.view();
      builder.add(bytes);
    } else {
      for (int64_t i = 0; i < times; ++i) builder.add(text);
    }
    return Value::text(builder.take(text.markup()));
  }
  const auto& items = value.sequence()->items;
  std::vector<Value> repeated;
  Charge charge;
  for (int64_t i = 0; i < times && !items.empty(); ++i) {
    spend(static_cast<int64_t>(items.size()));
    charge.add(static_cast<int64_t>(items.size() * sizeof(Value)));
    repeated.insert(repeated.end(), items.begin(), items.end());
  }
  return Value::sequence(value.sequence()->flavor, std::move(repeated));
}

bool repeatable(const Value& value) { return value.is_string() || value.is(Flavor::list) || value.is(Flavor::tuple); }

std::optional<Value> joined(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return Value::text(join_markup(a.text(), b.text()));
  for (const Flavor flavor : {Flavor::list, Flavor::tuple}) {
    if (!a.is(flavor) || !b.is(flavor)) continue;
    std::vector<Value> items = a.sequence()->items;
    const auto& more = b.sequence()->items;
    spend(static_cast<int64_t>(items.size() + more.size()));
    items.insert(items.end(), more.begin(), more.end());
    return Value::sequence(flavor, std::move(items));
  }
  return std::nullopt;
}

}  // namespace

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) {
    if (a == INT64_MIN) overflow();
    return -a;
  }
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value apply_binary(Operator op, const Value& a, const Value& b) {
  if (op == Operator::modulo && a.is_string()) return Value::text(format_percent(a.text(), b));
  if (a.is_undefined()) refuse_undefined(a);
  if (b.is_undefined()) refuse_undefined(b);
  const auto whole_a = a.as_integer();
  const auto whole_b = b.as_integer();
  if (whole_a && whole_b) return integer_result(op, *whole_a, *whole_b);
  if (const auto x = a.as_real(), y = b.as_real(); x && y) return real_result(op, *x, *y);
  if (op == Operator::multiply && repeatable(a) && whole_b) return repeat(a, *whole_b);
  if (op == Operator::multiply && repeatable(b) && whole_a) return repeat(b, *whole_a);
  if (op == Operator::add) {
    if (auto result = joined(a, b)) return *std::move(result);
  }
  refuse_types(op, a, b);
}

Value negate(const Value& value) {
  if (value.is_undefined()) refuse_undefined(value);
  if (const auto whole = value.as_integer()) return integer_result(Operator::subtract, 0, *whole);
  if (value.is(Kind::real)) return Value::real(-value.real());
  throw Error(fmt::format("'-' cannot be applied to '{}'", type_name(value)));
}

Value plus(const Value& value) {
  if (value.is_undefined()) refuse_undefined(value);
  if (const auto whole = value.as_integer()) return Value::integer(*whole);
  if (value.is(Kind::real)) return value;
  throw Error(fmt::format("'+' cannot be applied to '{}'", type_name(value)));
}

bool apply_comparison(Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::equal: return equal(a, b);
    case Operator::unequal: return !equal(a, b);
    case Operator::less: return less(a, b);
    case Operator::less_equal: return less(a, b) || equal(a, b);
    case Operator::greater: return less(b, a);
    case Operator::greater_equal: return less(b, a) || equal(a, b);
    case Operator::in: return contains(b, a);
    case Operator::not_in: return !contains(b, a);
    default: return false;
  }
}

}  // namespace snug::chat
