#pragma once
// The manual page snug(1), made from the pages of help and the key table.

#include <string>

namespace snug::cli {

std::string man_page();

}  // namespace snug::cli
