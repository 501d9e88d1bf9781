#pragma once
// One row of JSON text as a tree. Strict: what readers of JSON disagree about is refused. Knows nothing of files.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/json_value.h"

namespace snug {

class JsonRowParser {
 public:
  JsonRowParser();
  JsonRowParser(const JsonRowParser&) = delete;
  JsonRowParser& operator=(const JsonRowParser&) = delete;
  ~JsonRowParser();

  // The object in `text`, of its members those named in `wanted` alone, or all if that is empty. Whole numbers beyond 63
  // bits become floating point. Throws Error, without a place, for what is no object, not JSON or not UTF-8, for a member
  // that stands twice at the top and for nesting deeper than 100.
  JsonValue parse(std::string_view text, const std::vector<std::string>& wanted);

  // Any value, for JSON that stands in a string.
  JsonValue parse_value(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace snug
