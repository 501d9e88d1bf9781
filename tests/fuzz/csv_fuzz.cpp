// Fuzzes the reader of CSV: the input is a whole file. Nothing but snug::Error may come out, and records that are well have
// as many fields as there are columns, in UTF-8.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "data/csv_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const char separator : {',', '\t'}) {
    try {
      snug::CsvReader reader(snug::stream_of(input), "fuzz", separator);
      std::vector<std::string> fields;
      int64_t line = 0;
      for (std::string problem; reader.next(fields, problem); line = reader.line_number()) {
        if (reader.line_number() <= line) __builtin_trap();
        if (!problem.empty()) continue;
        if (fields.size() != reader.columns().size() || !std::all_of(fields.begin(), fields.end(), snug::is_utf8))
          __builtin_trap();
      }
    } catch (const snug::Error&) {
    }
  }
  return 0;
}
