#include "chat/text_operations.h"

#include <algorithm>

#include "base/utf8.h"
#include "chat/characters.h"
#include "chat/search.h"

namespace snug::chat {
namespace {

// Where the character that ends before `end` begins.
int64_t character_before(std::string_view text, int64_t end) {
  --end;
  while (end > 0 && (static_cast<unsigned char>(text[static_cast<size_t>(end)]) & 0xC0U) == 0x80U) --end;
  return end;
}

std::string_view character_at(std::string_view text, int64_t at) {
  const auto start = static_cast<size_t>(at);
  return text.substr(start, utf8_length(text[start]));
}

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

TextRef strip(const TextRef& text, const TextRef& characters, bool left, bool right) {
  const std::string_view all = text->view();
  spend_bytes(text->size());
  if (characters) spend_bytes(characters->size());
  int64_t spent = 0;
  const auto goes = [&](std::string_view character) {
    if (!characters) return is_space(decode(character));
    spent += characters->size();
    if (spent > 4096) spend_bytes(std::exchange(spent, 0));
    return characters->view().find(character) != std::string_view::npos;
  };
  int64_t begin = 0;
  int64_t end = text->size();
  while (left && begin < end && goes(character_at(all, begin)))
    begin += static_cast<int64_t>(utf8_length(all[static_cast<size_t>(begin)]));
  while (right && end > begin && goes(character_at(all, character_before(all, end)))) end = character_before(all, end);
  return begin == 0 && end == text->size() ? text : text->piece(begin, end);
}

TextRef replace(const TextRef& text, std::string_view old, const TextRef& by, int64_t count) {
  TextBuilder builder;
  int64_t at = 0;
  if (old.empty()) {  // before every character and at the end
    for (; count != 0 && at <= text->size(); --count) {
      builder.add(*by);
      if (at == text->size()) {
        ++at;
        break;
      }
      const auto length = static_cast<int64_t>(utf8_length(text->view()[static_cast<size_t>(at)]));
      builder.add(*text, at, at + length);
      at += length;
    }
    if (at < text->size()) builder.add(*text, at, text->size());
    return builder.take(text->markup());
  }
  spend_bytes(text->size());
  for (; count != 0; --count) {
    const int64_t place = seek_bytes(text->view(), old, at);
    if (place < 0) break;
    builder.add(*text, at, place);
    builder.add(*by);
    spend(1);
    at = place + static_cast<int64_t>(old.size());
  }
  if (at == 0) return text;
  builder.add(*text, at, text->size());
  return builder.take(text->markup());
}

std::vector<TextRef> split(const TextRef& text, std::string_view separator, int64_t most, bool from_right) {
  if (separator.empty()) throw Error("empty separator");
  std::vector<TextRef> parts;
  spend_bytes(text->size());
  if (from_right) {  // forwards through both backwards: linear, which rfind is not
    const std::string backwards(text->view().rbegin(), text->view().rend());
    const std::string reversed(separator.rbegin(), separator.rend());
    int64_t done = 0;
    for (; most != 0; --most) {
      const int64_t place = seek_bytes(backwards, reversed, done);
      if (place < 0) break;
      parts.push_back(text->piece(text->size() - place, text->size() - done));
      done = place + static_cast<int64_t>(reversed.size());
    }
    parts.push_back(text->piece(0, text->size() - done));
    std::ranges::reverse(parts);
    return parts;
  }
  int64_t begin = 0;
  for (; most != 0; --most) {
    const int64_t place = seek_bytes(text->view(), separator, begin);
    if (place < 0) break;
    parts.push_back(text->piece(begin, place));
    begin = place + static_cast<int64_t>(separator.size());
  }
  parts.push_back(text->piece(begin, text->size()));
  return parts;
}

std::vector<TextRef> split_space(const TextRef& text, int64_t most, bool from_right) {
  const std::string_view all = text->view();
  spend_bytes(text->size());
  struct Word {
    int64_t begin, end;
  };
  std::vector<Word> words;
  bool inside = false;
  for (int64_t at = 0; at < text->size();) {
    const std::string_view character = character_at(all, at);
    const bool space = is_space(decode(character));
    if (!space && !inside) {
      spend(1);
      words.push_back({at, at});
    }
    inside = !space;
    at += static_cast<int64_t>(character.size());
    if (inside) words.back().end = at;
  }
  if (most >= 0 && static_cast<int64_t>(words.size()) > most + 1) {  // one part keeps what is not cut, with its outer space
    if (from_right) {
      const auto kept = words.end() - most;
      const Word rest = {0, (kept - 1)->end};
      words.erase(words.begin(), kept);
      words.insert(words.begin(), rest);
    } else {
      words.resize(static_cast<size_t>(most) + 1);
      words.back().end = text->size();
    }
  }
  std::vector<TextRef> parts;
  for (const Word& word : words) parts.push_back(text->piece(word.begin, word.end));
  return parts;
}

std::vector<TextRef> split_lines(const TextRef& text, bool keep_ends) {
  const std::string_view all = text->view();
  spend_bytes(text->size());
  std::vector<TextRef> lines;
  int64_t begin = 0;
  for (int64_t at = 0; at < text->size();) {
    const std::string_view character = character_at(all, at);
    int64_t after = at + static_cast<int64_t>(character.size());
    if (is_line_end(decode(character))) {
      if (character == "\r" && after < text->size() && all[static_cast<size_t>(after)] == '\n') ++after;
      lines.push_back(text->piece(begin, keep_ends ? after : at));
      begin = after;
    }
    at = after;
  }
  if (begin < text->size()) lines.push_back(text->piece(begin, text->size()));
  return lines;
}

TextRef pad(const TextRef& text, int64_t width, std::string_view fill, Align align) {
  const int64_t missing = width - text->length();
  if (missing <= 0) return text;
  if (missing > Meter::kMostBytes) throw Error("the template makes more than 64 MiB of text");
  // Python puts the odd one to the left if the width is odd
  const int64_t left = align == Align::left ? 0 : align == Align::right ? missing : missing / 2 + (missing & width & 1);
  TextBuilder builder;
  for (int64_t i = 0; i < left; ++i) builder.add(fill);
  builder.add(*text);
  for (int64_t i = left; i < missing; ++i) builder.add(fill);
  return builder.take(text->markup());
}

TextRef map_characters(const TextRef& text, const std::function<void(std::string&, char32_t)>& map) {
  TextBuilder builder;
  spend(text->size() / 16);
  int64_t at = 0;
  const auto write = [&](int64_t end, const Tag& tag) {
    std::string part;
    while (at < end) {
      const std::string_view character = character_at(text->view(), at);
      map(part, decode(character));
      at += static_cast<int64_t>(character.size());
    }
    builder.add(part, tag);
  };
  for (const Run& run : text->runs()) write(run.end, run.tag);
  write(text->size(), {});
  return builder.take(text->markup());
}

TextRef lower(const TextRef& text) {
  constexpr char32_t kSigma = 0x3A3;  // at the end of a word it has a form of its own
  int64_t at = 0;
  bool inside = false;  // of a word
  return map_characters(text, [&](std::string& out, char32_t c) {
    at += static_cast<int64_t>(utf8_length(text->view()[static_cast<size_t>(at)]));
    const bool more = c == kSigma && at < text->size() && is_alpha(decode(text->view().substr(static_cast<size_t>(at))));
    append_cased(out, c == kSigma && inside && !more ? 0x3C2 : c, Case::lower);
    inside = is_alpha(c);
  });
}

int64_t count_of(std::string_view text, std::string_view wanted) {
  spend_bytes(static_cast<int64_t>(text.size()));
  if (wanted.empty())
    return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }) +
           1;
  int64_t count = 0;
  for (int64_t at = 0; (at = seek_bytes(text, wanted, at)) >= 0; at += static_cast<int64_t>(wanted.size())) ++count;
  return count;
}

}  // namespace snug::chat
