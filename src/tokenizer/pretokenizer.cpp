#include "tokenizer/pretokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace snug {
namespace {

struct Span {
  size_t begin, end;
  bool match;
};

// Calls `span` for matches and for what lies between them, in order and without gaps. After a match that is empty the search
// goes on one character later; an empty match where the last one ended does not count.
template <typename F>
void find_spans(const Regex& regex, std::string_view text, const F& span) {
  size_t done = 0;
  size_t from = 0;
  size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    const Regex::Match match = regex.find(text, from);
    if (!match.found) break;
    const bool empty = match.begin == match.end;
    const size_t step = match.end < text.size() ? utf8_length(text[match.end]) : 1;
    from = empty ? match.end + step : match.end;
    if (empty && match.end == last_end) continue;
    if (done < match.begin) span(Span{done, match.begin, false});
    span(Span{match.begin, match.end, true});
    done = last_end = match.end;
  }
  if (done < text.size()) span(Span{done, text.size(), false});
}

// The spans joined as `behavior` says (the folds of `tokenizers`' NormalizedString::split).
std::vector<Span> join(std::vector<Span> spans, SplitBehavior behavior) {
  std::vector<Span> joined;
  bool previous = false;
  if (behavior == SplitBehavior::merged_with_next) {
    std::ranges::reverse(spans);
    for (const Span& span : spans) {
      if (span.match && !previous && !joined.empty()) {
        joined.back().begin = span.begin;
      } else {
        joined.push_back(span);
      }
      previous = span.match;
    }
    std::ranges::reverse(joined);
    return joined;
  }
  for (const Span& span : spans) {
    const bool merge = behavior == SplitBehavior::contiguous ? span.match == previous : span.match && !previous;
    if (merge && !joined.empty()) {
      joined.back().end = span.end;
    } else {
      joined.push_back(span);
    }
    previous = span.match;
  }
  return joined;
}

}  // namespace

void Pretokenizer::add_split(Regex regex, SplitBehavior behavior, bool invert) {
  Step& added = steps_.emplace_back();
  added.regex.push_back(std::move(regex));
  added.behavior = behavior;
  added.invert = invert;
}

void Pretokenizer::add_prefix_space() { steps_.emplace_back(); }

void Pretokenizer::step(size_t index, std::string_view piece, const Sink& word) const {
  if (piece.empty()) return;
  if (index == steps_.size()) return word(piece);
  const Step& current = steps_[index];
  if (current.regex.empty()) {
    if (piece.starts_with(' ')) return step(index + 1, piece, word);
    std::string prefixed = " ";
    prefixed += piece;
    return step(index + 1, prefixed, word);
  }
  const Regex& regex = current.regex.front();
  const auto next = [&](const Span& span) { step(index + 1, piece.substr(span.begin, span.end - span.begin), word); };
  if (current.behavior == SplitBehavior::isolated) return find_spans(regex, piece, next);
  if (current.behavior == SplitBehavior::removed) {
    return find_spans(regex, piece, [&](const Span& span) {
      if (span.match == current.invert) next(span);
    });
  }
  std::vector<Span> spans;
  find_spans(regex, piece, [&](const Span& span) { spans.push_back({span.begin, span.end, span.match != current.invert}); });
  for (const Span& span : join(std::move(spans), current.behavior)) next(span);
}

}  // namespace snug
