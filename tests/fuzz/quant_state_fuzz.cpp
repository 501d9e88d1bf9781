// Fuzz target: the JSON beside a 4-bit tensor. Whatever comes in, the answer is a state whose sizes can be computed and that
// is read back from what we write, or an Error.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "formats/quant_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const snug::QuantState state = snug::parse_quant_state({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (state.blocks() < 1 || state.nested_blocks() < 1 || !std::isfinite(state.nested_offset)) std::abort();
    const snug::QuantState again = snug::parse_quant_state(snug::format_quant_state(state), "fuzz");
    if (again.shape != state.shape || again.nested_offset != state.nested_offset || again.nested != state.nested)
      std::abort();
  } catch (const snug::Error&) {
  }
  return 0;
}
