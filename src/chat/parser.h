#pragma once
// From tokens to syntax, as jinja2/parser.py 3.1 reads them. What snug's interpreter has no meaning for (include, import,
// extends, unknown tags) is refused here, by name.

#include <string>
#include <string_view>

#include "chat/syntax.h"

namespace snug::chat {

// Throws Error at "where:line". The source is bounded in size and depth.
Syntax parse_template(std::string_view source, std::string where);

}  // namespace snug::chat
