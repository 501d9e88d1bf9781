#pragma once
// Reading JSON that came from outside: a parse that names the file and the place, and typed fields that say what is wrong
// with them. Duplicate keys, which JSON readers disagree about, are refused. Knows nothing of what the JSON means.

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snug {

// Owns a parsed document; `root()` is valid while it lives.
class JsonDocument {
 public:
  // `where`: the name for messages. Throws Error for text that is not JSON or not UTF-8.
  JsonDocument(std::string_view text, std::string where);

  const std::string& where() const { return where_; }

  // The root as an object without duplicate keys. Throws Error.
  simdjson::dom::object root_object() const;

 private:
  std::string where_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

// Throws Error if a key stands twice in `object`.
void refuse_duplicate_keys(const simdjson::dom::object& object, const std::string& where);

// The value of `field`; each throws Error "FIELD must be …, not VALUE" with `where`.
int64_t json_integer(std::string_view field, simdjson::dom::element value, int64_t low, int64_t high,
                     const std::string& where);
double json_number(std::string_view field, simdjson::dom::element value, const std::string& where);
bool json_boolean(std::string_view field, simdjson::dom::element value, const std::string& where);
std::string json_string(std::string_view field, simdjson::dom::element value, const std::string& where);
simdjson::dom::object json_object(std::string_view field, simdjson::dom::element value, const std::string& where);
simdjson::dom::array json_array(std::string_view field, simdjson::dom::element value, const std::string& where);

// The value as short JSON text, for messages: at most 60 bytes of it.
std::string json_excerpt(simdjson::dom::element value);

// True for null, false, 0, "", [] and {}: what a field holds when the feature it names is off.
bool json_is_off(simdjson::dom::element value);

}  // namespace snug
