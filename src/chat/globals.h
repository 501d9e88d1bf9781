#pragma once
// Functions that every template finds: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.

#include <optional>
#include <string_view>

#include "chat/value.h"

namespace snug::chat {

std::optional<Value> global_function(std::string_view name);

}  // namespace snug::chat
