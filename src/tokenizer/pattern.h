#pragma once
// What a step looks for in a text: a regular expression, a string, or one character of a kind.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/regex.h"

namespace snug {

class Pattern {
 public:
  using Kind = bool (*)(uint32_t character);

  explicit Pattern(Regex regex) : regex_(std::move(regex)) {}
  explicit Pattern(Kind kind) : kind_(kind) {}
  // `text` may not be empty.
  explicit Pattern(std::string text) : text_(std::move(text)) {}

  struct Span {
    size_t begin, end;  // bytes
    bool match;
  };

  // Calls `span` for the matches in `text` (valid UTF-8) and for what lies between them, in order and without gaps. After a
  // match that is empty the search goes on one character later; an empty match where the last one ended does not count.
  template <typename F>
  void find_spans(std::string_view text, const F& span) const;

 private:
  Regex::Match find(std::string_view text, size_t from) const;

  std::optional<Regex> regex_;
  std::string text_;
  Kind kind_ = nullptr;
};

template <typename F>
void Pattern::find_spans(std::string_view text, const F& span) const {
  size_t done = 0;
  size_t from = 0;
  size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    const Regex::Match match = find(text, from);
    if (!match.found) break;
    const bool empty = match.begin == match.end;
    from = match.end;
    if (empty) from += match.end < text.size() ? utf8_length(text[match.end]) : 1;
    if (empty && match.end == last_end) continue;
    if (done < match.begin) span(Span{done, match.begin, false});
    span(Span{match.begin, match.end, true});
    done = last_end = match.end;
  }
  if (done < text.size()) span(Span{done, text.size(), false});
}

}  // namespace snug
