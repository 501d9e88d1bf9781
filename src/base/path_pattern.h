#pragma once
// Keys of PEFT's rank_pattern and alpha_pattern: the end of a module's path, as the regular expression `(.*\.)?(KEY)$` finds
// it (peft/utils/other.py, get_pattern_key). Understood are names, dots, digits, `\.` and `^`; other operators are refused.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace snug {

// In the order in which they are tried.
template <class Value>
using PathPatterns = std::vector<std::pair<std::string, Value>>;

// Throws Error, naming `setting`, if the key uses more of regular expressions than path_matches() understands.
inline void check_path_pattern(std::string_view setting, std::string_view key, const std::string& where) {
  if (key.starts_with('^')) key.remove_prefix(1);
  bool plain = !key.empty();
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    const bool escape = c == '\\' && i + 1 < key.size() && key[i + 1] == '.';
    plain = plain && (word || escape || c == '.');
  }
  if (!plain)
    throw Error(
        std::string(setting) + " '" + std::string(key.substr(0, 200)) + "' is a regular expression, which is not supported",
        where, "name the end of a module's path, such as q_proj or layers.0.mlp.up_proj");
}

// True if the key finds the module. An unescaped dot stands for any one character, `^` for the path's beginning.
inline bool path_matches(std::string_view key, std::string_view path) {
  const bool from_start = key.starts_with('^');
  if (from_start) key.remove_prefix(1);
  size_t at = path.size();
  for (size_t i = key.size(); i-- > 0;) {
    if (at == 0) return false;
    const bool escaped = key[i] == '.' && i > 0 && key[i - 1] == '\\';
    if ((key[i] != '.' || escaped) && path[at - 1] != key[i]) return false;
    --at;
    if (escaped) --i;
  }
  return at == 0 || (!from_start && path[at - 1] == '.');
}

// The value of the first key that finds the module.
template <class Value>
Value pattern_value(const PathPatterns<Value>& patterns, std::string_view path, Value otherwise) {
  for (const auto& [key, value] : patterns)
    if (path_matches(key, path)) return value;
  return otherwise;
}

}  // namespace snug
