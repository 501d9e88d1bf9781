// What merging and exporting read beside weights: adapter_config.json, config.json and names of tensors, one after another
// with a zero byte between them.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/adapter.h"
#include "formats/gguf_family.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view json = text.substr(0, text.find('\0'));
  const std::string_view name = json.size() < size ? text.substr(json.size() + 1) : std::string_view();
  try {
    const snug::AdapterConfig config = snug::parse_adapter_config(json, "fuzz", snug::AdapterUse::merge);
    config.scale_of(name, 4);
  } catch (const snug::Error&) {
  }
  try {
    const snug::GgufFamily family = snug::parse_gguf_family(json, "fuzz");
    family.place_of(name);
  } catch (const snug::Error&) {
  }
  return 0;
}
