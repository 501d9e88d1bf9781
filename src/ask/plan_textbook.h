#pragma once
// `snug plan --textbook`: the rules of thumb of articles on GPU memory, for a model or for a round count such as 7B.

#include <string>
#include <vector>

#include "ask/arguments.h"

namespace snug {

// The command's own flags that only --textbook reads, as parse_arguments takes them.
std::vector<std::string> textbook_flags();

// Prints; the exit code.
int plan_textbook(const Arguments& arguments, Asker& asker);

}  // namespace snug
