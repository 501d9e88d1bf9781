// Fuzzes the reader of training rows: the input is a whole JSON Lines file. Nothing but snug::Error may come out.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  snug::RowParser parser("fuzz");
  for (int64_t line = 1; !input.empty(); ++line) {
    const size_t end = input.find('\n');
    try {
      const auto row = parser.parse(input.substr(0, end), line);
      if (row && row->text.empty() && row->completion.empty()) __builtin_trap();
    } catch (const snug::Error&) {
    }
    input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  }
  return 0;
}
