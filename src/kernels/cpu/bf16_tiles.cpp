#include "kernels/cpu/bf16_tiles.h"

#include <stdexcept>

#include "base/cpu_features.h"
#include "kernels/cpu/bf16_units.h"

namespace snug::kernels {

#if defined(__x86_64__)

TileRegisters::TileRegisters() {
  if (bf16_unit() == Bf16Unit::tiles) amx::configure();
}

TileRegisters::~TileRegisters() {
  if (bf16_unit() == Bf16Unit::tiles) amx::release();
}

void multiply_tile(const TileFactors& factors, float* c, int64_t c_stride, bool accumulate) {
  switch (bf16_unit()) {
    case Bf16Unit::tiles: return amx::multiply_tile(factors, c, c_stride, accumulate);
    case Bf16Unit::dots: return avx512::multiply_tile(factors, c, c_stride, accumulate);
    case Bf16Unit::none: throw std::logic_error("this CPU does not multiply bf16");
  }
}

#else

TileRegisters::TileRegisters() { throw std::logic_error("this CPU does not multiply bf16"); }
TileRegisters::~TileRegisters() = default;
void multiply_tile(const TileFactors&, float*, int64_t, bool) {}

#endif

}  // namespace snug::kernels
