#pragma once
// The components of tokenizer.json around the model: normalizer, pre-tokenizer, post-processor, decoder. For this room
// alone.

#include "tokenizer/json_node.h"
#include "tokenizer/tokenizer_parts.h"

namespace snug {

// Reads the four components below `root` into `parts`; refuses by name what is not supported.
void read_components(const JsonNode& root, TokenizerParts& parts);

}  // namespace snug
