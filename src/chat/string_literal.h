#pragma once
// What stands between the quotes of a string in a template.

#include <string>
#include <string_view>

namespace snug::chat {

// `literal` (valid UTF-8, without its quotes) with Python's escapes resolved. Throws Error at `where` for broken ones.
std::string unescape(std::string_view literal, const std::string& where);

}  // namespace snug::chat
