#pragma once
// The one grammar of every command's words: positionals, and flags as "--name", "--name value" or "--name=value". It says
// which words belong together; what they mean, the command says.

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

// A mistake in how the program was called: exit code 2.
class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What stands behind a flag.
enum class Takes : uint8_t {
  nothing,
  value,
  truth,    // the next word if that is a boolean's value; else "true"
  anything  // the next word if that is no flag; else "true"
};

struct Flag {
  std::string name, value;  // without dashes; "" for one that takes nothing
};

struct Options {
  std::vector<std::string> positional;
  std::vector<Flag> flags;   // the command's own, in the order given
  std::vector<Flag> others;  // the rest, likewise, with names as they were written

  bool has(std::string_view flag) const;
  // Of the command's own: the value given last; `otherwise` if there is none.
  std::string value(std::string_view flag, const std::string& otherwise = {}) const;
  std::vector<std::string> values(std::string_view flag) const;
};

// What a flag takes that is not the command's own; throws UsageError for one that there is not.
using OtherFlags = std::function<Takes(const std::string& name)>;

// `own`: names of the command's flags; those that end with "=" take a value. Dashes and underscores in them are the same.
// Throws UsageError, naming the nearest, for any other flag where there is no `other`; and for a value that is missing or
// too much.
Options parse_options(std::span<char* const> words, const std::vector<std::string>& own, const OtherFlags& other = {});

}  // namespace snug
