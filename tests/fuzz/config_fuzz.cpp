// Fuzz target: config.json. Whatever comes in, the answer is a ModelSpec that holds together or an Error.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "model/config.h"
#include "model/parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto spec = snug::parse_config(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    const int64_t turned =
        spec.has_latent_attention() ? spec.rotary_size : spec.head_size;  // by rotary embeddings, in pairs
    if (spec.heads % spec.kv_heads != 0 || turned % 2 != 0 || snug::total_parameters(spec) < 1) std::abort();
  } catch (const snug::Error&) {
  }
  return 0;
}
