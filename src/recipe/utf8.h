#pragma once
// What text must be before a YAML parser sees it.

#include <string>
#include <string_view>

namespace snug {

// Throws Error with the line if `text` is not UTF-8 or holds control characters other than tab and line ends.
void check_plain_text(std::string_view text, const std::string& where);

}  // namespace snug
