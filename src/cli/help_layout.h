#pragma once
// The pages of help are written by hand, in prose and rows of two columns. What they are made of, and a page on a screen
// that is narrower than it was written for.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace snug::cli {

// The text, written in up to 128 columns, in at most `width`, cut between words alone: prose is filled anew, a row of two
// columns keeps its second one, or has it on lines of its own where there is no room beside the first. A word that is longer
// than `width` stays whole.
std::string laid_out(std::string_view text, int width);

// A part of a page, its lines joined.
struct HelpPart {
  enum class Kind : uint8_t { usage, prose, row, example };

  Kind kind = Kind::prose;
  std::string text;  // of a row the first column
  std::string help;  // of a row the second
};

// Usage is what begins with "snug " at the margin, an example what does so further in, unless it has a second column.
std::vector<HelpPart> help_parts(std::string_view page);

}  // namespace snug::cli
