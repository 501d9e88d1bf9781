#pragma once
// Whole JSON files, parsed. For this room alone.

#include <simdjson.h>

#include <string>

namespace snug {

// The root of `json`, whose text is given up as soon as it is parsed: it is the largest single thing in memory here. A text
// with spare capacity is not copied. Throws Error that names `where` and, for what can be found, the place.
simdjson::dom::element parse_json(simdjson::dom::parser& parser, std::string json, const std::string& where);

inline const std::string kDamaged = "the file is damaged; fetch it again";

}  // namespace snug
