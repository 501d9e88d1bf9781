#pragma once
// Arithmetic and comparison with Python's meaning. Whole numbers have 63 bits: what does not fit is an error, not a wrong
// value.

#include "chat/syntax.h"

namespace snug::chat {

Value apply_binary(Operator op, const Value& a, const Value& b);
Value negate(const Value& value);
Value plus(const Value& value);
// Also for in and not in.
bool apply_comparison(Operator op, const Value& a, const Value& b);

// Python's a % b and a // b for whole numbers, b not 0.
int64_t floor_modulo(int64_t a, int64_t b);
int64_t floor_divide(int64_t a, int64_t b);

}  // namespace snug::chat
