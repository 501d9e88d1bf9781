#pragma once
// Where the Unicode data of Hugging Face's `tokenizers` differ from those of PCRE2 and utf8proc: its parts follow Unicode 8
// (punctuation), 9 (normal forms), 16 (regular expressions) and 17 (Rust's own classes). The tables are made by
// tests/oracle/tokenizer_unicode.py, which asks the library about every code point. For this room alone.

#include <cstdint>
#include <span>

namespace snug {

struct CodeRange {
  uint32_t first, last;
};
struct NamedRange {
  uint32_t first, last;
  const char* name;  // category ("Lo") or script ("Han")
};
struct CodePair {
  uint32_t from, to;
};

// Assigned after Unicode 14, as regular expressions know them; by name, then by code point.
std::span<const NamedRange> younger_ranges();

// The others are sorted by code point.
std::span<const CodeRange> other_number_ranges();       // numbers beside the categories N of regular expressions
std::span<const CodeRange> punctuation_once_ranges();   // punctuation beside the categories P
std::span<const CodeRange> punctuation_since_ranges();  // categories P that are no punctuation
std::span<const CodeRange> combining_once_ranges();     // combining marks beside the categories M
std::span<const CodeRange> inert_ranges();              // without combining class and decomposition
std::span<const CodePair> lowercase_pairs();            // beside Unicode 14's simple lower case

}  // namespace snug
