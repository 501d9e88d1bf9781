#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// x += magnitude * u where u is drawn for every element, evenly between -1 and 1, from the same counters as dropout: seed,
// element, and the step and micro-batch that the scalars hold.
struct Noise {
  Out x;
  int64_t elements = 0;
  int64_t first_element = 0;  // where the draws' counting of elements begins, a multiple of 4
  float magnitude = 0;
  uint64_t seed = 0;
  const Scalars* scalars = nullptr;
  Cut cut;
};

template <>
inline Noise bind<Noise>(const OpView& op) {
  return {.x = out(op, Slot::x),
          .elements = op[Slot::x].elements,
          .first_element = op[Slot::x].first_element,
          .magnitude = static_cast<float>(op.attributes.scale),
          .seed = op.attributes.noise_seed,
          .scalars = scalars(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
