#pragma once
// Messages as people write them, made those that chat templates take: {role, content, …}. For this room alone.

#include "data/json_row.h"
#include "data/row_format.h"

namespace snug {

// Reads the messages of a list into `chat`: {role, content} as they stand, ShareGPT's {from, value} in those words; `weight`
// (0 or 1), `loss` and `train` decide whether a message is learned, and are taken out. `learned`: unless they say otherwise.
// Throws Error, without a place, naming `column` and the message.
void add_messages(JsonValue& list, std::string_view column, bool learned, JsonRowParser& parser, Chat& chat);

// The list of tools in `value`, which may be a list, its JSON in a string, or nothing. Throws Error.
JsonValue read_tools(JsonValue value, JsonRowParser& parser);

// Bare functions {name, description, parameters} become {"type": "function", "function": …}, as templates are written for
// and as LLaMA-Factory and ms-swift hand them on. (transformers and TRL hand on what stands in the row.)
void wrap_functions(JsonValue& tools);

}  // namespace snug
