#pragma once
// Values from JSON and to JSON, as Python's json module writes it.

#include <string>
#include <string_view>

#include "chat/value.h"

namespace snug::chat {

// The value of a JSON text; objects keep the order of their keys, of a key that stands twice the last value. `where` names
// the text in errors. Throws Error for what is no JSON, for whole numbers beyond 63 bits and for nesting deeper than 200.
Value parse_json(std::string_view text, const std::string& where);

struct JsonStyle {
  bool ensure_ascii = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool multiline = false;
  std::string indent;  // of one level, if multiline
  bool sort_keys = false;
};

// json.dumps(value). Throws Error for what JSON has no place for.
TextRef to_json(const Value& value, const JsonStyle& style);

}  // namespace snug::chat
