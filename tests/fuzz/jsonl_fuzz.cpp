// Fuzzes the readers of training rows: the input is a whole file of JSON Lines or of one JSON array. Nothing but snug::Error
// may come out.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/row_format.h"
#include "data/row_source.h"

namespace {

std::vector<std::string> columns_of(const snug::JsonValue& fields) {
  std::vector<std::string> names;
  for (const snug::JsonMember& member : *fields.object()) names.push_back(member.name);
  return names;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const auto source = snug::json_row_source(input, "fuzz");
    snug::RowInterpreter interpreter({});
    snug::SourceRow row;
    while (source->next(row)) {
      if (!row.problem.empty()) continue;
      try {
        if (!interpreter.format()) interpreter.settle(columns_of(row.fields));
        const snug::Example example = interpreter.interpret(std::move(row.fields));
        if (!example.chat && !example.text && example.completion.empty()) __builtin_trap();
        if (example.chat && example.chat->learned.size() != example.chat->messages.list()->size()) __builtin_trap();
      } catch (const snug::Error&) {
      }
    }
  } catch (const snug::Error&) {
  }
  return 0;
}
