#include "torch/log_lines.h"

#include <algorithm>
#include <array>

#include "base/trimmed.h"
#include "base/utf8.h"
#include "torch/words.h"

namespace snug {

namespace {

bool is_printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

// Bytes of "[0;31m" at the front of `text`, or of another control sequence after ESC; 0 if there is none.
size_t sequence_length(std::string_view text, bool escaped) {
  if (text.empty() || text[0] != '[') return 0;
  size_t at = 1;
  while (at < text.size() && at < 32 && (is_digit(text[at]) || text[at] == ';' || text[at] == '?')) ++at;
  if (at >= text.size()) return escaped ? at : 0;
  const char last = text[at];
  if (escaped) return last >= '@' && last <= '~' ? at + 1 : at;
  return at > 1 && last == 'm' ? at + 1 : 0;
}

// Bytes of an escape character and its sequence at the front of `text`; 0 if there is none.
size_t escape_length(std::string_view text) {
  constexpr std::array<std::string_view, 5> kEscapes = {"\x1b", "\\u001b", "\\u001B", "\\x1b", "\\033"};
  for (const std::string_view escape : kEscapes) {
    if (!text.starts_with(escape)) continue;
    const std::string_view rest = text.substr(escape.size());
    if (rest.starts_with(']')) {  // a title or a link, up to BEL or ESC
      const size_t end = std::min(rest.find_first_of("\x07\x1b"), rest.size() - 1);
      return escape.size() + end + (rest[end] == '\x07' ? 1 : 0) + (end + 1 == rest.size() && rest[end] != '\x07' ? 1 : 0);
    }
    const size_t length = sequence_length(rest, true);
    if (length > 0) return escape.size() + length;
    return escape.size() == 1 ? std::min(text.size(), size_t{2}) : 0;
  }
  return sequence_length(text, false);
}

// A line of JSON that holds text: its "\n" part lines, as they did before it was written down.
std::string unescaped(std::string_view line) {
  std::string out;
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\\' || at + 1 == line.size()) {
      out += line[at];
      continue;
    }
    const char next = line[at + 1];
    if (next == 'u' || next == 'x' || next == '0') {
      out += '\\';  // colour codes, which are dealt with later
      continue;
    }
    out += next == 'n' || next == 'r' ? '\n' : next == 't' ? ' ' : next;
    ++at;
  }
  return out;
}

// The text of a line that is one string: an element of a notebook's output, or what Python's repr() made of a traceback. The
// line itself if it is none.
std::string_view string_of(std::string_view line, std::string& text) {
  constexpr std::array<std::string_view, 3> kSigns = {R"((most recent call last):\n)", R"(\n  File \")", R"(\n  File ")"};
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::string_view end = trimmed(line);
  const bool element = first + 1 < line.size() && line[first] == '"' && (end.ends_with('"') || end.ends_with("\","));
  if (!element && std::ranges::none_of(kSigns, [&](std::string_view sign) { return contains(line, sign); })) return line;
  std::string_view inner = line.substr(element ? first + 1 : 0);
  if (element && inner.ends_with(',')) inner.remove_suffix(1);
  if (element && inner.ends_with('"')) inner.remove_suffix(1);
  text = unescaped(inner);
  return text;
}

struct Entity {
  std::string_view name, text;
};

// Bytes of an HTML entity at the front of `text`, which stands for `out`; 0 if there is none.
size_t entity_length(std::string_view text, std::string_view& out) {
  constexpr auto kEntities = std::to_array<Entity>({{"&quot;", "\""},
                                                    {"&#34;", "\""},
                                                    {"&#x22;", "\""},
                                                    {"&#39;", "'"},
                                                    {"&#x27;", "'"},
                                                    {"&apos;", "'"},
                                                    {"&lt;", "<"},
                                                    {"&gt;", ">"},
                                                    {"&nbsp;", " "},
                                                    {"&amp;", "&"}});
  for (const Entity& entity : kEntities)
    if (text.starts_with(entity.name)) {
      out = entity.text;
      return entity.name.size();
    }
  return 0;
}

// Blanks that are no space, and marks that show as nothing.
size_t odd_blank_length(std::string_view text, std::string_view& out) {
  out = {};
  if (text.starts_with("\xEF\xBB\xBF")) return 3;  // a byte order mark
  if (text.starts_with("\xE2\x80\x8B")) return 3;  // no width
  out = " ";
  return text.starts_with("\xC2\xA0") ? 2 : 0;
}

}  // namespace

std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '\x1b' || c == '[' || c == '\\') {
      if (const size_t length = escape_length(text.substr(at))) {
        at += length;
        continue;
      }
    }
    if (c == '&' || c == '\xC2' || c == '\xE2' || c == '\xEF') {
      std::string_view stands_for;
      const size_t length =
          c == '&' ? entity_length(text.substr(at), stands_for) : odd_blank_length(text.substr(at), stands_for);
      if (length > 0) {
        out += stands_for;
        at += length;
        continue;
      }
    }
    if (is_printable(c)) {
      out += c;
    } else if (c == '\t') {
      out += ' ';
    }
    ++at;
  }
  return is_utf8(out) ? out : utf8_lossy(out);
}

void LogLines::feed(std::string_view bytes) { split(utf16_.read(bytes)); }

void LogLines::split(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
    const auto length = std::min(static_cast<size_t>(end - text.begin()), kLongestLine - raw_.size());
    raw_.append(text.substr(0, length));
    if (length > 0) returned_ = false;
    text.remove_prefix(length);
    if (raw_.size() >= kLongestLine) {
      part_line();
    } else if (!text.empty()) {
      const char c = text[0];
      text.remove_prefix(1);
      if (c == '\0') continue;
      if (!(c == '\n' && returned_)) end_line();
      if (c == '\n') ++number_;
      returned_ = c == '\r';
    }
  }
}

void LogLines::finish() {
  split(utf16_.finish());
  if (!raw_.empty() || parted_) end_line();
}

void LogLines::part_line() {
  constexpr size_t kLookBack = 1024;
  const size_t space = raw_.rfind(' ');
  const size_t cut = space != std::string::npos && space + kLookBack > raw_.size() && space > 0 ? space : raw_.size();
  take(std::string_view(raw_).substr(0, cut));
  raw_.erase(0, cut);
  parted_ = true;
}

void LogLines::end_line() {
  if (!raw_.empty() || !parted_) take(raw_);
  if (is_json_) json_.finish();
  raw_.clear();
  parted_ = is_json_ = false;
}

// A line, or the next part of one.
void LogLines::take(std::string_view raw) {
  if (!parted_) is_json_ = looks_like_json(raw);
  if (is_json_) {
    json_.feed(raw);
    return;
  }
  std::string unpacked;
  const std::string_view text = string_of(raw, unpacked);
  for (size_t begin = 0; begin == 0 || begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    emit(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// Without the marks of mails and issues, "> ". Pytest points at code with the same character, but never at a line's
// beginning: only what is sure to be quoted, and the lines that follow it, lose their marks.
std::string_view LogLines::unquoted(std::string_view line) {
  bool quoted = false;
  while (line.starts_with("> ") && (quoted_ || (line.size() > 2 && line[2] != ' '))) {
    quoted = true;
    line.remove_prefix(2);
  }
  if (quoted_ && line == ">") {
    quoted = true;
    line = {};
  }
  quoted_ = quoted;
  return line;
}

void LogLines::emit(std::string_view raw) {
  clean_ = without_escapes(raw);
  LogLine line = without_prefix(unquoted(clean_));
  line.number = number_;
  sink_(line);
}

}  // namespace snug
