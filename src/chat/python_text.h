#pragma once
// Values as Python prints them: str() for what a template writes, repr() for what stands inside lists and dicts.

#include <string>

#include "chat/value.h"

namespace snug::chat {

// Appends str(value); what the tags of strings leave open is taken from `fill`. Throws Error for what Python would print as
// an address in memory.
void write_str(TextBuilder& out, const Value& value, const Tag& fill = {});
void write_repr(TextBuilder& out, const Value& value);
TextRef to_str(const Value& value);
TextRef to_repr(const Value& value);

// repr(float): the shortest digits that read back, "1e+16", "0.1", "inf".
std::string format_real(double number);

}  // namespace snug::chat
