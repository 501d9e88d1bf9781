#pragma once
// Integer arithmetic that throws instead of wrapping. Used wherever sizes come from outside.

#include <cstdint>

#include "base/error.h"

namespace snug {

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw Error("a size does not fit in 63 bits");
  return result;
}

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) throw Error("a size does not fit in 63 bits");
  return result;
}

// `value` rounded up to a multiple of `alignment` (> 0).
inline int64_t align_up(int64_t value, int64_t alignment) {
  return checked_add(value, alignment - 1) / alignment * alignment;
}

}  // namespace snug
