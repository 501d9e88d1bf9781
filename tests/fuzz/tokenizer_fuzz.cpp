// Fuzzes the reader of tokenizer.json, and what it accepts with the input itself as text. Nothing but snug::Error may come
// out.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const snug::Tokenizer tokenizer = snug::Tokenizer::parse(input, "fuzz");
    const auto ids = tokenizer.encode(input.substr(0, 4096), true);
    tokenizer.decode(ids);
  } catch (const snug::Error&) {
  }
  return 0;
}
