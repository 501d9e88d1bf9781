#pragma once
// Text of a recipe's value → bool, number, list. Each function throws Error "KEY must be …, not 'TEXT'" without a place.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug {

bool parse_boolean(std::string_view key, std::string_view text);  // true|false|yes|no|on|off|1|0; empty is true
int64_t parse_integer(std::string_view key, std::string_view text, int64_t low, int64_t high);
double parse_number(std::string_view key, std::string_view text, double low, double high);  // finite, low ≤ value ≤ high

// The one value of a key; throws if there are several or none.
const std::string& single_value(std::string_view key, std::span<const std::string> values);

// Several values, or one text split at commas; spaces around items are dropped. Throws for an empty item among others.
std::vector<std::string> parse_list(std::string_view key, std::span<const std::string> values);

}  // namespace snug
