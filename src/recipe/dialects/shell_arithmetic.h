#pragma once
// Whole numbers of a shell script: "$((16 / N))".

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace snug::dialects {

using ShellVariables = std::map<std::string, std::string>;

// The words of a text, blanks between.
std::vector<std::string> split(const std::string& text);

// A number or the name of one; none for others, for less than 0 and for more than 2^31.
std::optional<int64_t> whole_number(const std::string& word, const ShellVariables& variables);

// "$(expr 16 / $N)", "$((16 / N))": whole numbers and names, from left to right; nothing else.
std::optional<int64_t> reckoned(std::string_view text, const ShellVariables& variables);

}  // namespace snug::dialects
