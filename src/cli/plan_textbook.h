#pragma once
// `snug plan --textbook`: the rules of thumb of articles on GPU memory, for a model or for a round count such as 7B.

#include <string>
#include <vector>

#include "cli/arguments.h"

namespace snug::cli {

// The command's own flags that only --textbook reads, as parse_arguments takes them.
std::vector<std::string> textbook_flags();

// Prints; the exit code.
int plan_textbook(const Arguments& arguments);

}  // namespace snug::cli
