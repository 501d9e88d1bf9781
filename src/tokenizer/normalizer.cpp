#include "tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/characters.h"

namespace snug {
namespace {

// Calls `each` with every character and its bytes.
template <typename F>
void for_each_character(std::string_view text, const F& each) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    each(c.value, at, at + c.bytes);
    at += c.bytes;
  }
}

// Google's NMT cleaning: what becomes of a character; 0: it goes. U+0000 stays.
uint32_t nmt_character(uint32_t c) {
  if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return 0;
  const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                     c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  return space ? ' ' : c;
}

void replace(const TextPiece& piece, const Pattern& pattern, std::string_view content, AlignedText& to) {
  pattern.find_spans(piece.text, [&](const Pattern::Span& span) {
    if (!span.match) return to.copy(piece, span.begin, span.end);
    TextOrigin origin{piece.shift, piece.shift};
    if (to.tracked && span.end > 0) origin = piece.origin(span.end - 1);
    to.append(content, origin);
  });
}

TextPiece strip(const TextPiece& piece, const Normalizer::Strip& sides) {
  size_t begin = 0;
  size_t end = piece.text.size();
  const auto space_at = [&](size_t at) { return is_space(code_point_at(piece.text, at).value); };
  while (sides.left && begin < end && space_at(begin)) begin += utf8_length(piece.text[begin]);
  while (sides.right && begin < end) {
    const size_t last = end - last_character(piece.text.substr(0, end)).size();
    if (!space_at(last)) break;
    end = last;
  }
  return piece.part(begin, end);
}

void apply_simple(const TextPiece& piece, Normalizer::Simple step, AlignedText& to) {
  if (step == Normalizer::Simple::byte_level) return spell_bytes(piece, to);
  for_each_character(piece.text, [&](uint32_t c, size_t begin, size_t end) {
    if (step == Normalizer::Simple::strip_accents) {
      if (!is_combining_mark(c)) to.copy(piece, begin, end);
      return;
    }
    std::string characters;
    if (step == Normalizer::Simple::lowercase) {
      const Lowercase lower = lowercase(c);
      append_utf8(characters, lower.first);
      if (lower.second != 0) append_utf8(characters, lower.second);
    } else if (const uint32_t kept = nmt_character(c); kept != 0 || c == 0) {
      append_utf8(characters, kept);
    }
    to.append(characters, to.tracked ? piece.origin(begin) : TextOrigin{});
  });
}

// One step on a piece that is not empty: the result, in `to` or not changed at all.
class NormalizerStep {
 public:
  NormalizerStep(const TextPiece& piece, AlignedText& to) : piece_(piece), to_(to) {}

  TextPiece operator()(NormalForm form) const {
    if (is_plainly_normal(piece_.text, form)) return piece_;
    append_normal_form(piece_, form, to_);
    return done();
  }
  TextPiece operator()(const Normalizer::Prepend& step) const {
    prepend(piece_, step.text, to_);
    return done();
  }
  TextPiece operator()(const Normalizer::Replace& step) const {
    replace(piece_, step.pattern, step.content, to_);
    return done();
  }
  TextPiece operator()(const Normalizer::Strip& step) const { return strip(piece_, step); }
  TextPiece operator()(Normalizer::Simple step) const {
    apply_simple(piece_, step, to_);
    return done();
  }

 private:
  TextPiece done() const { return to_.piece(piece_.shift); }

  const TextPiece& piece_;
  AlignedText& to_;
};

}  // namespace

void Normalizer::add(Step&& step) { steps_.push_back(std::move(step)); }

TextPiece Normalizer::apply(TextPiece piece, bool tracked, Scratch& scratch) const {
  size_t next = 0;
  for (const Step& step : steps_) {
    if (piece.text.empty()) break;
    AlignedText& to = scratch[next];
    to.clear();
    to.tracked = tracked;
    piece = std::visit(NormalizerStep(piece, to), step);
    if (!to.text.empty()) next = 1 - next;
  }
  return piece;
}

void replace_spaces(const TextPiece& piece, std::string_view content, AlignedText& to) {
  for (size_t at = 0; at < piece.text.size();) {
    const size_t space = std::min(piece.text.find(' ', at), piece.text.size());
    to.copy(piece, at, space);
    if (space < piece.text.size()) to.append(content, to.tracked ? piece.origin(space) : TextOrigin{});
    at = space + 1;
  }
}

void prepend(const TextPiece& piece, std::string_view text, AlignedText& to) {
  to.append(text, to.tracked ? piece.origin(0) : TextOrigin{});
  to.copy(piece, 0, piece.text.size());
}

void spell_bytes(const TextPiece& piece, AlignedText& to) {
  for (size_t at = 0; at < piece.text.size(); ++at) {
    std::string character;
    kByteAlphabet.append(character, static_cast<unsigned char>(piece.text[at]));
    to.append(character, to.tracked ? piece.origin(at) : TextOrigin{});
  }
}

}  // namespace snug
