#include "recipe/dialects/shell_arithmetic.h"

#include <algorithm>
#include <charconv>

namespace snug::dialects {

namespace {

constexpr int64_t kMostCounted = int64_t{1} << 31;
constexpr std::string_view kOperations = "+-*/";

// Its signs apart, without quotes and braces.
std::string spaced(const std::string& text) {
  std::string made;
  for (const char c : text.substr(0, 200))
    if (kOperations.find(c) != std::string_view::npos) {
      made += std::string(" ") + c + " ";
    } else if (c != '\\' && c != '"' && c != '{' && c != '}' && c != '$') {
      made += c;
    }
  return made;
}

}  // namespace

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(" \t\n", at);
    if (begin == std::string::npos) break;
    at = std::min(text.find_first_of(" \t\n", begin), text.size());
    parts.push_back(text.substr(begin, at - begin));
  }
  return parts;
}

std::optional<int64_t> whole_number(const std::string& word, const ShellVariables& variables) {
  const auto known = variables.find(word);
  const std::string& text = known == variables.end() ? word : known->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostCounted) return std::nullopt;
  return value;
}

std::optional<int64_t> reckoned(std::string_view text, const ShellVariables& variables) {
  std::string inside(text.substr(2, text.size() - std::min<size_t>(text.size(), 3)));
  const bool brackets = inside.starts_with('(') && inside.ends_with(')');
  if (brackets) inside = inside.substr(1, inside.size() - 2);
  if (!brackets && !inside.starts_with("expr ")) return std::nullopt;
  if (!brackets) inside = inside.substr(5);
  std::optional<int64_t> value;
  char operation = '\0';
  for (const std::string& part : split(spaced(inside))) {
    if (part.size() == 1 && kOperations.find(part[0]) != std::string_view::npos) {
      if (!value || operation != '\0') return std::nullopt;
      operation = part[0];
      continue;
    }
    const std::optional<int64_t> next = whole_number(part, variables);
    if (!next || (value && operation == '\0') || (operation == '/' && *next == 0)) return std::nullopt;
    value = operation == '+'   ? *value + *next
            : operation == '-' ? *value - *next
            : operation == '*' ? *value * *next
            : operation == '/' ? *value / *next
                               : *next;
    if (*value > kMostCounted || *value < 0) return std::nullopt;
    operation = '\0';
  }
  return operation == '\0' ? value : std::nullopt;
}

}  // namespace snug::dialects
