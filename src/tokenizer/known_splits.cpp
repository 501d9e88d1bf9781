#include "tokenizer/known_splits.h"

#include <array>

#include "base/utf8.h"
#include "tokenizer/character_classes.h"

namespace snug {
namespace {

using Classes = CharacterClasses;

// A text as the expressions' parts see it.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text), classes_(Classes::get()) {}

  struct Character {
    uint8_t classes;  // 0: the end of the text
    size_t end;
  };

  Character read(size_t at) const {
    if (at >= text_.size()) return {0, at};
    const CodePoint c = code_point_at(text_, at);
    return {classes_.of(c.value), at + c.bytes};
  }

  // The end of the characters of one of these classes, at most so many.
  size_t run(size_t at, unsigned classes, size_t most = std::string_view::npos) const {
    for (; most > 0; --most) {
      const Character c = read(at);
      if ((c.classes & classes) == 0) break;
      at = c.end;
    }
    return at;
  }

  // 's|'t|'re|'ve|'m|'ll|'d; `at` if there is none. Without regard to case, ſ is an s.
  size_t contraction(size_t at, bool any_case) const {
    const auto letter = [&](size_t i) {
      const char c = i < text_.size() ? text_[i] : '\0';
      return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    };
    if (letter(at) != '\'') return at;
    if (any_case && text_.substr(at + 1).starts_with("\u017F")) return at + 3;
    switch (letter(at + 1)) {
      case 's':
      case 't':
      case 'm':
      case 'd': return at + 2;
      case 'r':
      case 'v': return letter(at + 2) == 'e' ? at + 3 : at;
      case 'l': return letter(at + 2) == 'l' ? at + 3 : at;
      default: return at;
    }
  }

  // \s*[\r\n]+ (if `lines`), \s+(?!\S) or \s+, whichever comes first, where white space stands.
  size_t space(size_t at, bool lines) const {
    size_t last = at;  // where the last character begins
    size_t line = 0;   // behind the last end of a line
    size_t end = at;
    for (Character c = read(at); (c.classes & Classes::kSpace) != 0; c = read(end)) {
      last = end;
      end = c.end;
      if ((c.classes & Classes::kLineEnd) != 0) line = end;
    }
    if (lines && line > 0) return line;
    return end == text_.size() || last == at ? end : last;
  }

  // The rest of a match: \r and \n, and slashes if asked for.
  size_t line_ends(size_t at, bool slashes) const {
    while (at < text_.size() && (text_[at] == '\r' || text_[at] == '\n' || (slashes && text_[at] == '/'))) ++at;
    return at;
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+, of which the first part gives back what the second needs; 0
  // if there is none.
  size_t lower_word(size_t at) const {
    size_t given_back = 0;
    for (Character c = read(at); (c.classes & Classes::kUpper) != 0; c = read(at)) {
      at = c.end;
      if ((c.classes & Classes::kLower) != 0) given_back = at;
    }
    const size_t end = run(at, Classes::kLower);
    return end > at ? end : given_back;
  }

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+, where no lower_word stands; 0 if there is none.
  size_t upper_word(size_t at) const {
    const size_t end = run(at, Classes::kUpper);
    return end > at ? end : 0;
  }

 private:
  std::string_view text_;
  const Classes& classes_;
};

size_t split_gpt2(std::string_view text, size_t at) {
  const Reader reader(text);
  if (const size_t end = reader.contraction(at, false); end > at) return end;
  const Reader::Character first = reader.read(text[at] == ' ' ? at + 1 : at);
  for (const uint8_t kind : {Classes::kLetter, Classes::kNumber, Classes::kSign}) {
    if ((first.classes & kind) != 0) return reader.run(first.end, kind);
  }
  return reader.space(at, false);
}

// What the younger expressions have in common behind their words: \p{N}{1,kDigits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|
// \s+(?!\S)|\s+, the second with or without slashes at its end.
template <size_t kDigits, bool kSlashes>
size_t split_rest(const Reader& reader, std::string_view text, size_t at, Reader::Character first) {
  if ((first.classes & Classes::kNumber) != 0) return reader.run(first.end, Classes::kNumber, kDigits - 1);
  const Reader::Character sign = text[at] == ' ' ? reader.read(at + 1) : first;
  if ((sign.classes & Classes::kSign) == 0) return reader.space(at, true);
  return reader.line_ends(reader.run(sign.end, Classes::kSign), kSlashes);
}

// [^\r\n\p{L}\p{N}]
bool may_lead(Reader::Character c) { return (c.classes & (Classes::kLetter | Classes::kNumber | Classes::kLineEnd)) == 0; }

// Words are [^\r\n\p{L}\p{N}]?\p{L}+, after contractions.
template <size_t kDigits>
size_t split_llama3(std::string_view text, size_t at) {
  const Reader reader(text);
  if (const size_t end = reader.contraction(at, true); end > at) return end;
  const Reader::Character first = reader.read(at);
  const Reader::Character letter = may_lead(first) ? reader.read(first.end) : first;
  if ((letter.classes & Classes::kLetter) != 0) return reader.run(letter.end, Classes::kLetter);
  return split_rest<kDigits, false>(reader, text, at, first);
}

// Words are [^\r\n\p{L}\p{N}]? and a lower_word, or else the same and an upper_word; a mark may be the first character of
// either part.
template <size_t kDigits, bool kContractions>
size_t split_by_case(std::string_view text, size_t at) {
  const Reader reader(text);
  const Reader::Character first = reader.read(at);
  const bool leads = may_lead(first);
  size_t end = leads ? reader.lower_word(first.end) : 0;
  if (end == 0) end = reader.lower_word(at);
  if (end == 0 && leads) end = reader.upper_word(first.end);
  if (end == 0) end = reader.upper_word(at);
  if (end == 0) return split_rest<kDigits, true>(reader, text, at, first);
  return kContractions ? reader.contraction(end, true) : end;
}

struct Known {
  std::string_view expression;
  KnownSplit split;
};

constexpr std::array<Known, 5> kKnown = {{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", split_gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_llama3<3>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_llama3<1>},
    // o200k, of GPT-4o
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_by_case<3, true>},
    // Tekken, of Mistral
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     split_by_case<1, false>},
}};

}  // namespace

KnownSplit find_known_split(std::string_view expression) {
  for (const Known& known : kKnown) {
    if (known.expression == expression) return known.split;
  }
  return nullptr;
}

}  // namespace snug
