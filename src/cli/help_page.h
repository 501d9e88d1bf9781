#pragma once
// What `snug help TOPIC` prints, as it was written: prose, and rows of two columns. The man page and the words that shells
// complete are read from it too.

#include <string_view>

namespace snug::cli {

// The page of a command, or of "pytorch"; the overview for anything else.
std::string_view help_page(std::string_view topic);

}  // namespace snug::cli
