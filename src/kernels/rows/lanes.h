#pragma once
// Row kernels are written once, over a `Lanes`: a group of lanes that walks along a row of numbers together. On the CPU it
// is a Highway vector, on a GPU a group of threads with one number each. The files of this folder know pointers, lengths and
// Lanes; which thread or block works on which row is the backend's business.
//
// They are fragments: no include, no namespace, no guard. A backend includes them inside its own namespace (on the CPU once
// for each instruction set, because compilers fix the instruction set of a template where it is read), after its Lanes, and
// says what SNUG_ROW is: the qualifier of a function that runs on it.
//
// A Lanes `lanes` has a type Vec, one fp32 number for each lane, and
//   lanes.width()               how many lanes
//   lanes.load(p, i, n)         p[i], p[i+1], … of a row of n numbers; 0 past its end. p: const float*, Bf16* or F16*
//   lanes.store(v, p, i, n)     the opposite; bf16 and f16 are rounded to nearest even; nothing is written past the end
//   lanes.set(x)                x in every lane
//   lanes.inside(i, n)          1 where a row of n numbers has one at the lane's place, else 0
//   add, sub, mul, div, max(a, b), sqrt(a), fma(a, b, c) = a*b + c
//   lanes.sign(a)               -1, 0 or 1; 0 for NaN
//   lanes.exp(a)                0 below -87, at most e^88; NaN stays NaN
//   lanes.sum(v), lanes.highest(v)   over all lanes, known to every lane
// A row of n numbers is walked as  for (int64_t i = 0; i < n; i += lanes.width()).

#include <cstdint>

namespace snug::kernels {

// A bfloat16 in memory.
struct Bf16 {
  uint16_t bits;
};

// An IEEE half in memory.
struct F16 {
  uint16_t bits;
};

}  // namespace snug::kernels
