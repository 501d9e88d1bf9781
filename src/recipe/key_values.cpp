#include "recipe/key_values.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"

namespace snug {

namespace {

// "a|b or c" by "|" and " or ".
std::vector<std::string_view> alternatives_of(std::string_view values) {
  std::vector<std::string_view> parts;
  while (!values.empty()) {
    constexpr std::string_view kOr = " or ";
    const size_t bar = values.find('|'), word = values.find(kOr), end = std::min({bar, word, values.size()});
    parts.push_back(values.substr(0, end));
    values.remove_prefix(std::min(values.size(), end + (end == word ? kOr.size() : 1)));
  }
  return parts;
}

std::optional<double> number_behind(std::string_view text, std::string_view before) {
  if (!text.starts_with(before)) return std::nullopt;
  double number = 0.0;
  const std::string_view digits = text.substr(before.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// "at least 1", "above 0", "from 0 to 24", "from 0 to less than 1".
std::optional<NumberRange> range_of(std::string_view text) {
  if (const auto least = number_behind(text, "at least ")) return NumberRange{.least = least};
  if (const auto least = number_behind(text, "above ")) return NumberRange{.least = least, .above = true};
  const auto least = number_behind(text, "from ");
  if (!least) return std::nullopt;
  constexpr std::string_view kLess = "less than ";
  std::string_view to = text.substr(text.find(" to ") + 4);
  const bool below = to.starts_with(kLess);
  if (below) to.remove_prefix(kLess.size());
  return NumberRange{.least = least, .most = number_behind(to, ""), .below = below};
}

bool all_of(std::string_view text, int (*is)(int)) {
  return std::ranges::all_of(text, [&](char c) { return is(static_cast<unsigned char>(c)) != 0; });
}

// An example is told by its marks: "momentum=0.9", "embed_tokens,…", "24GB".
bool is_example(const Key& key, std::string_view text) {
  return text.find('=') != std::string_view::npos || text.find("…") != std::string_view::npos ||
         (key.type == KeyType::size && std::isdigit(static_cast<unsigned char>(text.front())) != 0);
}

void add_words(KeyGrammar& grammar, std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    grammar.words.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(list.size(), end + 1));
  }
}

}  // namespace

KeyGrammar grammar_of(const Key& key) {
  KeyGrammar grammar;
  for (const std::string_view one : alternatives_of(key.values)) {
    if (const auto numbers = range_of(one)) {
      grammar.numbers = numbers;
    } else if (is_example(key, one)) {
      grammar.open = true;
      if (key.type == KeyType::text) grammar.pair = one.substr(0, one.find('='));
    } else if (all_of(one, std::isupper)) {
      grammar.names = one;
      grammar.open = true;
    } else {
      add_words(grammar, one);
    }
  }
  return grammar;
}

// Asked of the row itself: one that takes a single value says so of two.
bool takes_list(const Key& key) {
  if (key.type == KeyType::list) return true;
  if (key.type != KeyType::text) return false;
  Recipe unused;
  const std::string two[] = {"a", "b"};
  try {
    key.set(unused, two);
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace snug
