#pragma once
// Dropout before adapters, as PEFT places it: every adapted module draws a mask of its own, and only what it leaves of x
// goes through A. Masks are drawn from counters, so nothing of them is kept.

#include <cstdint>

#include "program/program.h"

namespace snug {

// With probability p an element of an adapter's input is left out in training. With DoRA, y = W x + g (W x' + s B A x') - W
// x' where x' is what dropout leaves of x and g = magnitude / norm. Call after add_lora() and add_evaluation(), which has
// none.
void add_dropout(Program& program, double p, uint64_t seed);

// What dropout leaves of x is drawn again where a loop's backward reads it, rather than kept for every layer. Call between
// the two bodies' differentiation and the choice of what is kept.
void draw_again_in_backward(Program& program, const Region& forward, Region& backward);

}  // namespace snug
