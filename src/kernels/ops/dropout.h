#pragma once

#include "kernels/binding.h"

namespace snug::kernels {

// out (+)= x * keep/(1 - p) where keep is drawn for every element: 0 with probability p, else 1; if `complement`,
// out (+)= x minus that. The draw depends on seed, stream, layer, element, and the step and micro-batch that the scalars
// hold, so it is the same whenever and by however many threads it is made. out may be the same memory as x.
struct Dropout {
  In x;
  Out out;
  int64_t elements = 0;
  int64_t first_element = 0;  // where the draws' counting of elements begins, a multiple of 4
  double probability = 0;     // p, below 1
  bool complement = false;
  bool accumulate = false;
  uint64_t seed = 0, stream = 0;  // stream < 2^16, one for each op
  int64_t layer = 0;              // < 2^16
  const Scalars* scalars = nullptr;
  Cut cut;
};

template <>
inline Dropout bind<Dropout>(const OpView& op) {
  const Attributes& a = op.attributes;
  return {.x = in(op, Slot::x),
          .out = out(op, op.has(Slot::out) ? Slot::out : Slot::x),
          .elements = op[Slot::x].elements,
          .first_element = op[op.has(Slot::out) ? Slot::out : Slot::x].first_element,
          .probability = a.probability,
          .complement = a.complement,
          .accumulate = a.accumulate,
          .seed = a.noise_seed,
          .stream = a.noise_stream,
          .layer = op.layer,
          .scalars = scalars(op),
          .cut = op.cut};
}

}  // namespace snug::kernels
