// tokenizer.model: any bytes are read or refused.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "formats/sentencepiece_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    snug::parse_sentencepiece_model({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const snug::Error&) {
  }
  return 0;
}
