#pragma once
// Python source -> tokens (The Python Language Reference, ch. 2): as much of the lexical grammar as it takes to read literal
// arguments. Nothing is run. Comments, blanks and line ends within brackets are dropped.

#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/document.h"

namespace snug::dialects {

enum class PythonKind : uint8_t { name, number, string, sign, line_end };

struct PythonToken {
  PythonKind kind = PythonKind::sign;
  std::string text;    // a string's is what it says
  Span span;           // with quotes
  bool exact = true;   // of a string: nothing in it is filled in when it runs
  int64_t indent = 0;  // of the first token of a statement: the blanks before it

  bool is(std::string_view sign) const { return kind == PythonKind::sign && text == sign; }
  bool is_word(std::string_view word) const { return kind == PythonKind::name && text == word; }
};

inline bool opens(const PythonToken& token) { return token.is("(") || token.is("[") || token.is("{"); }

// Ends with a line_end. Throws Error with the line for a string that does not end.
std::vector<PythonToken> python_tokens(std::string_view source, const std::string& where);

}  // namespace snug::dialects
