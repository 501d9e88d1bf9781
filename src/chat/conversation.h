#pragma once
// A conversation as templates see it: the variables that apply_chat_template of transformers 5 passes on.

#include <vector>

#include "chat/chat_template.h"

namespace snug::chat {

// Messages with the fields that are none left out, and with `reasoning_content`, `thinking` and `reasoning` standing for one
// another. With `tagged`, the texts of message i carry the tag i, its role and name excepted. Throws Error for what is no
// list of dicts, and for an empty one.
std::vector<Value> normalize_messages(const Value& messages, bool tagged);

// All variables of a rendering.
Dict template_variables(std::vector<Value> messages, const Conversation& conversation, const Variables& special_tokens);

}  // namespace snug::chat
