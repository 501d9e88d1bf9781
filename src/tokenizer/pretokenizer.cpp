#include "tokenizer/pretokenizer.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "tokenizer/normalizer.h"

namespace snug {
namespace {

using Span = Pattern::Span;

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

template <typename F>
void split(const Pretokenizer::Split& step, std::string_view text, const F& next) {
  if (step.behavior == SplitBehavior::isolated) return step.pattern.find_spans(text, next);
  if (step.behavior == SplitBehavior::removed) {
    return step.pattern.find_spans(text, [&](const Span& span) {
      if (span.match == step.inverted) next(span);
    });
  }
  std::vector<Span> spans;
  step.pattern.find_spans(text, [&](const Span& span) {
    spans.push_back({span.begin, span.end, span.match != step.inverted});
  });
  for (const Span& span : join(std::move(spans), step.behavior)) next(span);
}

// Pieces that end before each `mark` but those at their start: MergedWithNext, of which a mark alone is never merged on.
template <typename F>
void split_before(std::string_view text, std::string_view mark, const F& next) {
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find(mark, text.substr(begin).starts_with(mark) ? begin + mark.size() : begin);
    end = std::min(end, text.size());
    next(Span{begin, end, false});
    begin = end;
  }
}

template <typename F>
void split_by_length(std::string_view text, int64_t characters, const F& next) {
  size_t begin = 0;
  int64_t count = 0;
  for (size_t at = 0; at < text.size();) {
    at += utf8_length(text[at]);
    if (++count < characters && at < text.size()) continue;
    next(Span{begin, at, false});
    begin = at;
    count = 0;
  }
}

// Hands the parts of a piece on.
struct Parts {
  void operator()(const Span& span) const {
    if (span.begin < span.end) next(piece.part(span.begin, span.end));
  }
  const TextPiece& piece;
  const std::function<void(const TextPiece&)>& next;
};

class PretokenizerStep {
 public:
  using Next = std::function<void(const TextPiece&)>;
  PretokenizerStep(const TextPiece& piece, bool tracked, const Next& next) : piece_(piece), next_(next) {
    made_.tracked = tracked;
  }

  void operator()(const Pretokenizer::Split& step) { split(step, piece_.text, Parts{piece_, next_}); }
  void operator()(const Pretokenizer::PrefixSpace& /*step*/) {
    if (piece_.text.starts_with(' ')) return next_(piece_);
    prepend(piece_, " ", made_);
    next_(made_.piece(piece_.shift));
  }
  void operator()(const Pretokenizer::SpellBytes& /*step*/) {
    spell_bytes(piece_, made_);
    next_(made_.piece(piece_.shift));
  }
  void operator()(const Pretokenizer::Metaspace& step) {
    replace_spaces(piece_, step.replacement, made_);
    TextPiece marked = made_.piece(piece_.shift);
    AlignedText longer;
    longer.tracked = made_.tracked;
    const bool wanted = step.scheme == PrependScheme::always || (step.scheme == PrependScheme::first && piece_.shift == 0);
    if (wanted && !marked.text.starts_with(step.replacement)) {
      prepend(marked, step.replacement, longer);
      marked = longer.piece(piece_.shift);
    }
    if (!step.split) return next_(marked);
    split_before(marked.text, step.replacement, Parts{marked, next_});
  }
  void operator()(const Pretokenizer::FixedLength& step) {
    split_by_length(piece_.text, step.characters, Parts{piece_, next_});
  }

 private:
  const TextPiece& piece_;
  const Next& next_;
  AlignedText made_;
};

}  // namespace

void Pretokenizer::add(Step&& step) { steps_.push_back(std::move(step)); }

bool Pretokenizer::asks_for_origins(bool moved) const {
  for (const Step& step : steps_) {
    const auto* metaspace = std::get_if<Metaspace>(&step);
    if (moved && metaspace != nullptr && metaspace->scheme == PrependScheme::first) return true;
    moved = moved || !std::holds_alternative<Split>(step);
  }
  return false;
}

void Pretokenizer::step(size_t index, const TextPiece& piece, bool tracked, const Sink& word) const {
  if (index == steps_.size()) return word(piece);
  if (piece.text.empty()) return;
  const auto next = [&](const TextPiece& part) { step(index + 1, part, tracked, word); };
  const Sink sink = std::cref(next);  // by reference it needs no memory
  std::visit(PretokenizerStep(piece, tracked, sink), steps_[index]);
}

}  // namespace snug
