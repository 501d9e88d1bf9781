#pragma once
// Filters ("value|name(arguments)") and tests ("value is name(arguments)") by their names, with the meaning that jinja2 3.1
// and transformers give them.

#include <string>
#include <string_view>

#include "chat/callable.h"

namespace snug::chat {

// Throw Error for names that are not known.
Value apply_filter(Interpreter& interpreter, const std::string& name, const Value& input, CallArguments& arguments);
bool apply_test(Interpreter& interpreter, const std::string& name, const Value& value, CallArguments& arguments);

using Filter = Value (*)(Interpreter& interpreter, const Value& input, CallArguments& arguments);

// One of its family each; null if it has no filter of that name.
Filter find_text_filter(std::string_view name);
Filter find_number_filter(std::string_view name);
Filter find_sequence_filter(std::string_view name);
Filter find_order_filter(std::string_view name);

}  // namespace snug::chat
