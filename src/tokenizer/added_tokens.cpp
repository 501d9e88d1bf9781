#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"

namespace snug {
namespace {

// Rust's \w: Alphabetic, M, Nd, Pc, Join_Control.
const std::string kWord =
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}"
    "\\x{1f170}-\\x{1f189}]";

// The last character of `text` (not empty).
std::string_view last_character(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
  return text.substr(begin);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher() : word_(kWord, "added_tokens"), space_("\\s", "added_tokens") {}

void AddedTokenMatcher::add(std::string content, const AddedToken& token) {
  if (content.empty() || flags_.contains(content)) return;
  std::vector<size_t>& lengths = lengths_[static_cast<unsigned char>(content[0])];
  const auto place = std::ranges::lower_bound(lengths, content.size(), std::greater<>());
  if (place == lengths.end() || *place != content.size()) lengths.insert(place, content.size());
  flags_.emplace(std::move(content), Flags{token.id, token.single_word, token.lstrip, token.rstrip});
}

AddedTokenMatcher::Hit AddedTokenMatcher::longest_at(std::string_view rest) const {
  for (const size_t length : lengths_[static_cast<unsigned char>(rest[0])]) {
    if (length > rest.size()) continue;
    const auto found = flags_.find(rest.substr(0, length));
    if (found != flags_.end()) return {length, &found->second};
  }
  return {};
}

void AddedTokenMatcher::split(std::string_view text, const std::function<void(const Part&)>& part) const {
  const auto is = [](const Regex& kind, std::string_view character) { return kind.find(character, 0).found; };
  size_t done = 0;
  for (size_t at = 0; !flags_.empty() && at < text.size();) {
    const Hit hit = longest_at(text.substr(at));
    if (hit.flags == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + hit.length;
    at = end;
    if (hit.flags->single_word) {
      const bool word_before = begin > 0 && is(word_, last_character(text.substr(0, begin)));
      const bool word_after = end < text.size() && is(word_, text.substr(end, utf8_length(text[end])));
      if (word_before || word_after) continue;
    }
    if (hit.flags->lstrip) {
      while (begin > done && is(space_, last_character(text.substr(0, begin))))
        begin -= last_character(text.substr(0, begin)).size();
    }
    if (hit.flags->rstrip) {
      while (end < text.size() && is(space_, text.substr(end, utf8_length(text[end])))) end += utf8_length(text[end]);
    }
    if (done < begin) part({text.substr(done, begin - done), -1});
    part({{}, hit.flags->id});
    done = end;
  }
  if (done < text.size()) part({text.substr(done), -1});
}

}  // namespace snug
