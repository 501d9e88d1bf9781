#include "tokenizer/pattern.h"

namespace snug {

Pattern Pattern::of_expression(std::string_view expression, const std::string& where) {
  if (const KnownSplit known = find_known_split(expression)) return Pattern(known);
  return Pattern(Regex(expression, where));
}

Regex::Match Pattern::find(std::string_view text, size_t from) const {
  if (regex_) return regex_->find(text, from);
  if (kind_ == nullptr) {
    const size_t begin = text.find(text_, from);
    if (begin == std::string_view::npos) return {};
    return {begin, begin + text_.size(), true};
  }
  while (from < text.size()) {
    const CodePoint character = code_point_at(text, from);
    if (kind_(character.value)) return {from, from + character.bytes, true};
    from += character.bytes;
  }
  return {};
}

}  // namespace snug
