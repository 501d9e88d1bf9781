#include "tokenizer/pattern.h"

namespace snug {

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
