#pragma once
// Strings from outside, as error messages show them.

#include <string>
#include <string_view>

namespace snug {

// The first 80 bytes of `text` in quotation marks.
inline std::string quote(std::string_view text) {
  std::string shown = "\"";
  shown.append(text.substr(0, 80));
  shown += '"';
  return shown;
}

}  // namespace snug
