#pragma once
// The filters, tests and functions that a template finds: the names alone, for the parser. Their meaning is in filters.h.

#include <string_view>

namespace snug::chat {

bool is_filter(std::string_view name);
bool is_test(std::string_view name);

}  // namespace snug::chat
