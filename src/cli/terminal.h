#pragma once
// Whether, and how wide, the screen is.

#include <cstdio>

#include "report/text_style.h"

namespace snug::cli {

bool is_terminal(std::FILE* stream);
// Colour and the terminal's width on a terminal, plain 80 columns elsewhere.
TextStyle style_of(std::FILE* stream);

}  // namespace snug::cli
