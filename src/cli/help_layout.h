#pragma once
// Help on a screen that is narrower than it was written for.

#include <string>
#include <string_view>

namespace snug::cli {

// The text, written in up to 128 columns, in at most `width`, cut between words alone: prose is filled anew, a row of two
// columns keeps its second one, or has it on lines of its own where there is no room beside the first. A word that is longer
// than `width` stays whole.
std::string laid_out(std::string_view text, int width);

}  // namespace snug::cli
