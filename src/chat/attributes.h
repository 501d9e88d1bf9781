#pragma once
// What stands behind "a.b", "a['b']" and "a[1:2]": entries of dicts, items of sequences, methods of Python's types. After
// the immutable sandbox of jinja2: what would change a list or a dict is refused, and so is what begins with an underscore.

#include <string>
#include <string_view>

#include "chat/callable.h"

namespace snug::chat {

Value get_attribute(const Value& object, const std::string& name);
Value get_item(const Value& object, const Value& key);
// object[begin:end:step]; each may be none.
Value get_slice(const Value& object, const Value& begin, const Value& end, const Value& step);

// A method of Python's str, list, tuple, dict, int or float.
using Method = Value (*)(Interpreter&, const Value& self, CallArguments& arguments);

// Null if the type has no such method (or snug does not know it).
Method find_method(const Value& object, std::string_view name);
Method find_text_method(std::string_view name);

}  // namespace snug::chat
