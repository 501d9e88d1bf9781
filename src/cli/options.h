#pragma once
// Words of a command that takes no recipe: positionals and a few flags, each with a value or alone.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::cli {

struct Options {
  std::vector<std::string> positional;
  std::multimap<std::string, std::string> flags;  // name without dashes -> value; "" for one that stands alone

  bool has(const std::string& flag) const { return flags.contains(flag); }
  // The value given last; `otherwise` if there is none.
  std::string value(const std::string& flag, const std::string& otherwise = {}) const;
  std::vector<std::string> values(const std::string& flag) const;  // in the order given
};

// `known`: names of flags; those that end with "=" take a value ("--name value" or "--name=value"). Dashes and underscores
// in a flag are the same. Throws UsageError for anything else.
Options parse_options(std::span<char* const> words, const std::vector<std::string_view>& known);

}  // namespace snug::cli
