#pragma once
// From a template's source to tokens, with Jinja's rules of whitespace: trim_blocks, lstrip_blocks, the signs "-" and "+",
// raw blocks and comments. After jinja2/lexer.py 3.1.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/value.h"

namespace snug::chat {

enum class TokenType : uint8_t { data, output_begin, output_end, tag_begin, tag_end, name, string, number, op, end };

struct Token {
  TokenType type = TokenType::end;
  std::string text;  // of data, name, string, operator
  Value value;       // of a number
  uint32_t line = 1;
  uint32_t begin = 0, end = 0;  // bytes of the normalized source
};

// Line breaks as Jinja sees them: all become "\n", and one at the very end goes.
std::string normalize_newlines(std::string_view source);

// `source` is normalized. Throws Error at "where:line".
std::vector<Token> tokenize(std::string_view source, const std::string& where);

}  // namespace snug::chat
