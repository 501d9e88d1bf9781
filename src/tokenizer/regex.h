#pragma once
// A compiled regular expression over UTF-8 (PCRE2, JIT), written in the dialect of tokenizer.json, which is Oniguruma's.
// What the two dialects read differently is rewritten or refused by name, never guessed. Character classes are those of
// Unicode 16, as in `tokenizers`: what PCRE2 (Unicode 14 in Debian 12) does not know is added.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace snug {

class Regex {
 public:
  // `where` names the field in errors. Throws Error if the expression cannot be read or means something else in PCRE2.
  Regex(std::string_view pattern, const std::string& where);

  struct Match {
    size_t begin = 0, end = 0;  // bytes
    bool found = false;
  };

  // The first match in `text` (valid UTF-8) that starts at byte `from` or later; what stands before is seen by look-behind.
  // Throws Error if matching needs too much work or memory.
  Match find(std::string_view text, size_t from) const;

 private:
  struct Compiled;
  struct Deleter {
    void operator()(Compiled* compiled) const;
  };
  std::unique_ptr<Compiled, Deleter> compiled_;
  std::string where_;
};

// The PCRE2 spelling of an Oniguruma expression; throws Error as the constructor does. Shown for tests.
std::string translate_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace snug
