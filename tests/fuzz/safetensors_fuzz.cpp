// Fuzz target: headers of safetensors files, adapter configs and manifests. Whatever comes in, the answer is a value or an
// Error.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/adapter.h"
#include "formats/manifest.h"
#include "formats/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    const auto header = snug::parse_safetensors_header(text, data[0] * 256 + data[1], "fuzz");
    static_cast<void>(snug::format_safetensors_header(header.tensors, header.metadata));
  } catch (const snug::Error&) {
  }
  try {
    static_cast<void>(snug::format_adapter_config(snug::parse_adapter_config(text, "fuzz")));
  } catch (const snug::Error&) {
  }
  try {
    static_cast<void>(snug::parse_manifest(text, "fuzz"));
  } catch (const snug::Error&) {
  }
  return 0;
}
