// Filters that make numbers.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/utf8.h"
#include "chat/characters.h"
#include "chat/filters.h"
#include "chat/format.h"
#include "chat/lookup.h"
#include "chat/operators.h"
#include "chat/text_operations.h"

namespace snug::chat {
namespace {

// Digits of a number as int() and float() take them: without outer space, single underscores between digits gone. None if
// the underscores are wrong.
std::optional<std::string> plain_digits(const TextRef& text) {
  const TextRef stripped = strip(text, nullptr, true, true);
  const std::string_view all = stripped->view();
  std::string digits;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] != '_') {
      digits += all[i];
      continue;
    }
    const auto is_digit = [&](size_t at) {
      return at < all.size() && std::isalnum(static_cast<unsigned char>(all[at])) != 0;
    };
    if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
  }
  return digits;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'z' ? low - 'a' + 10 : 99;
}

// int(text, base); none if Python would raise ValueError.
std::optional<int64_t> parse_integer(const TextRef& text, int64_t base) {
  const auto plain = plain_digits(text);
  if (!plain || base < 0 || base > 36 || base == 1) return std::nullopt;
  std::string_view rest = *plain;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const char letter = rest.size() > 2 && rest[0] == '0' ? static_cast<char>(rest[1] | 0x20) : '\0';
  const int64_t prefixed = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefixed != 0 && (base == prefixed || base == 0)) {
    rest.remove_prefix(2);
    base = prefixed;
  } else if (base == 0) {
    if (rest.size() > 1 && rest[0] == '0' && rest.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
    base = 10;
  }
  if (rest.empty()) return std::nullopt;
  int64_t value = 0;
  for (const char c : rest) {
    if (digit_of(c) >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, base, &value) || __builtin_sub_overflow(value, digit_of(c), &value)) {
      throw Error("a whole number does not fit in 63 bits");
    }
  }
  if (negative) return value;
  if (value == INT64_MIN) throw Error("a whole number does not fit in 63 bits");
  return -value;
}

// float(text); none if Python would raise ValueError.
std::optional<double> parse_real(const TextRef& text) {
  const auto plain = plain_digits(text);
  if (!plain || plain->empty()) return std::nullopt;
  std::string lowered = *plain;
  std::ranges::transform(lowered, lowered.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string bare = lowered.substr(lowered[0] == '-' || lowered[0] == '+' ? 1 : 0);
  const bool word = bare == "inf" || bare == "infinity" || bare == "nan";
  if (!word && (lowered.find_first_not_of("0123456789+-.e") != std::string::npos)) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(lowered.c_str(), &end);
  return end == lowered.c_str() + lowered.size() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> truncated(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (!(std::abs(number) < 9.2e18)) throw Error("a whole number does not fit in 63 bits");
  return static_cast<int64_t>(number);
}

Value to_int(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "int", "?default ?base");
  Value otherwise = bound.value(0, Value::integer(0));
  if (input.is_undefined()) refuse_undefined(input);
  if (const auto whole = input.as_integer()) return Value::integer(*whole);
  if (input.is(Kind::real)) {
    if (std::isinf(input.real())) throw Error("cannot convert float infinity to integer");
    const auto whole = truncated(input.real());
    return whole ? Value::integer(*whole) : otherwise;
  }
  if (!input.is_string()) return otherwise;
  if (const auto whole = parse_integer(input.text(), bound.integer(1, 10))) return Value::integer(*whole);
  const auto real = parse_real(input.text());
  const auto whole = real ? truncated(*real) : std::nullopt;
  return whole ? Value::integer(*whole) : otherwise;
}

Value to_float(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "float", "?default");
  if (input.is_undefined()) refuse_undefined(input);
  if (const auto number = input.as_real()) return Value::real(*number);
  const auto number = input.is_string() ? parse_real(input.text()) : std::nullopt;
  return number ? Value::real(*number) : bound.value(0, Value::real(0.0));
}

Value absolute(Interpreter&, const Value& input, CallArguments& arguments) {
  static_cast<void>(match_arguments(arguments, "abs", ""));
  if (input.is_undefined()) refuse_undefined(input);
  if (const auto whole = input.as_integer()) return *whole < 0 ? negate(input) : Value::integer(*whole);
  if (!input.is(Kind::real)) throw Error(fmt::format("bad operand type for abs(): '{}'", type_name(input)));
  return Value::real(std::abs(input.real()));
}

// round(number, digits) of Python: to even where the binary number lies exactly between.
double rounded(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 300) return number;
  if (digits >= 0) {
    NumberStyle style;
    style.type = 'f';
    style.precision = digits;
    return std::strtod(format_number(Value::real(number), style).c_str(), nullptr);
  }
  if (digits < -308) return std::copysign(0.0, number);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / unit) * unit;
}

int64_t rounded(int64_t number, int64_t digits) {
  if (digits >= 0) return number;
  if (digits < -18) return 0;
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  const int64_t rest = floor_modulo(number, unit);
  const int64_t down = number - rest;
  const bool up = rest > unit / 2 || (rest == unit / 2 && floor_modulo(floor_divide(down, unit), 2) != 0);
  return up ? down + unit : down;
}

Value round(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "round", "?precision ?method");
  const std::string method = bound.has(1) ? bound.text(1)->bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor") throw Error("the method must be common, ceil or floor");
  if (input.is_undefined()) refuse_undefined(input);
  const int64_t digits = bound.integer(0, 0);
  const auto number = input.as_real();
  if (!number) throw Error(fmt::format("type {} cannot be rounded", type_name(input)));
  const auto whole = input.as_integer();
  if (method == "common") return whole ? Value::integer(rounded(*whole, digits)) : Value::real(rounded(*number, digits));
  const Value unit = apply_binary(Operator::power, Value::integer(10), Value::integer(digits));
  const double scaled = *apply_binary(Operator::multiply, input, unit).as_real();
  if (!std::isfinite(scaled)) throw Error("an infinite number cannot be rounded");
  return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / *unit.as_real());
}

Value sum(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "sum", "?attribute ?start");
  const Lookup lookup(bound.has(0) ? std::optional(bound.at(0)) : std::nullopt);
  Value total = bound.value(1, Value::integer(0));
  if (total.is_string()) throw Error("sum() can't sum strings");
  const SequenceRef items = iterate(input);
  for (const Value& item : items->items) total = apply_binary(Operator::add, total, lookup(item));
  return total;
}

Value filesizeformat(Interpreter&, const Value& input, CallArguments& arguments) {
  const Bound bound = match_arguments(arguments, "filesizeformat", "?binary");
  const bool binary = bound.flag(0, false);
  const auto given = input.is_string() ? parse_real(input.text()) : input.as_real();
  if (!given) throw Error(fmt::format("'{}' is no size", type_name(input)));
  const double base = binary ? 1024.0 : 1000.0;
  if (*given == 1.0) return Value::text("1 Byte");
  if (*given < base) return Value::text(fmt::format("{} Bytes", static_cast<int64_t>(*given)));
  double unit = base;
  std::string_view letter = "k";
  for (const std::string_view next : {"M", "G", "T", "P", "E", "Z", "Y"}) {
    if (*given < unit * base) break;
    unit *= base;
    letter = next;
  }
  const std::string prefix = binary ? (letter == "k" ? "Ki" : std::string(letter) + "i") : std::string(letter);
  return Value::text(fmt::format("{:.1f} {}B", *given / unit, prefix));
}

constexpr std::pair<std::string_view, Filter> kNumberFilters[] = {
    {"int", to_int},  {"float", to_float}, {"abs", absolute},
    {"round", round}, {"sum", sum},        {"filesizeformat", filesizeformat},
};

}  // namespace

Filter find_number_filter(std::string_view name) {
  const auto* found = std::ranges::find(kNumberFilters, name, [](const auto& entry) { return entry.first; });
  return found == std::end(kNumberFilters) ? nullptr : found->second;
}

}  // namespace snug::chat
