#pragma once
// The components of tokenizer.json beside the model, each read from its field; every type and field that is not known is
// refused by name. For this room alone.

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/decoder.h"
#include "tokenizer/json_node.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pretokenizer.h"

namespace snug {

void read_normalizer(const JsonNode& node, Normalizer& normalizer);
void read_pretokenizer(const JsonNode& node, Pretokenizer& pretokenizer);
void read_decoder(const JsonNode& node, Decoder& decoder);

// The ids that go before and after a text.
void read_post_processor(const JsonNode& node, std::vector<int32_t>& prefix, std::vector<int32_t>& suffix);

// {"String": …} or {"Regex": …}.
Pattern read_pattern(const JsonNode& node);

// The field `key` as one character.
std::string_view read_character(const JsonNode& node, std::string_view key);

}  // namespace snug
