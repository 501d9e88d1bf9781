// Fuzz target: generation_config.json, and config.json behind it. Whatever comes in, the answer is settings that can be
// drawn with, or an Error.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "formats/generation_config.h"

namespace {

void check(const std::string& generation_config, const std::string& config) {
  try {
    const snug::GenerationDefaults read = snug::parse_generation_defaults(generation_config, config, "fuzz");
    if (!(read.temperature >= 0) || !(read.top_p > 0 && read.top_p <= 1) || read.top_k < 0) std::abort();
    for (const int32_t token : read.stop_tokens)
      if (token < 0) std::abort();
  } catch (const snug::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text, "");
  check("", text);
  check("{}", text);
  return 0;
}
