#include "torch/log_lines.h"

#include <algorithm>
#include <array>

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

// "2025-11-14T03:12:34.123Z", "2025-11-14 03:12:34,123", "04-01 23:46:56", "23:46:56.123": bytes at the front, else 0.
size_t timestamp_length(std::string_view text) {
  size_t at = 0, digits = 0, colons = 0;
  for (; at < text.size() && at < 40; ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      ++digits;
    } else if (c == ':') {
      ++colons;
    } else if (!(c == '-' || c == '/' || c == '.' || c == ',' || c == 'T' || c == 'Z' || c == '+' ||
                 (c == ' ' && colons == 0 && at + 1 < text.size() && is_digit(text[at + 1])))) {
      break;
    }
  }
  return digits >= 6 && colons >= 2 && (at == text.size() || text[at] == ' ' || text[at] == ']') ? at : 0;
}

std::optional<int> rank_in(std::string_view prefix) {
  size_t end = prefix.size();
  while (end > 0 && !is_digit(prefix[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(prefix[begin - 1])) --begin;
  if (begin == end || end - begin > 6) return std::nullopt;
  return static_cast<int>(number_at(prefix.substr(begin, end - begin)));
}

// "[rank1]:", "rank4]:", "[default0]:", "[1,3]<stderr>:": bytes at the front, else 0; sets the rank.
size_t rank_length(std::string_view text, std::optional<int>& rank) {
  const size_t opened = text.starts_with('[') ? 1 : 0;
  constexpr std::array<std::string_view, 5> kNames = {"rank", "Rank", "RANK", "default", "trainer"};
  for (const std::string_view name : kNames) {
    if (!text.substr(opened).starts_with(name)) continue;
    size_t at = opened + name.size();
    while (at < text.size() && (is_digit(text[at]) || text[at] == ' ')) ++at;
    if (at == opened + name.size() || at >= text.size() || text[at] != ']') continue;
    rank = rank_in(text.substr(0, at));
    ++at;
    return at < text.size() && text[at] == ':' ? at + 1 : at;
  }
  const size_t end = text.substr(0, 48).find(':');  // mpirun's tags
  if (opened == 1 && end != std::string_view::npos && text.substr(0, end).ends_with("]<stderr>")) {
    rank = rank_in(text.substr(0, end));
    return end + 1;
  }
  return 0;
}

// "(EngineCore_DP0 pid=1234)" and "(pid=1234, ip=10.0.0.1)" of vLLM and Ray.
size_t actor_length(std::string_view text) {
  if (!text.starts_with('(')) return 0;
  const size_t end = text.substr(0, 160).find(')');
  return end != std::string_view::npos && text.substr(0, end).find("pid=") != std::string_view::npos ? end + 1 : 0;
}

// "ERROR 04-01 23:46:56 [engine.py:160]" of vLLM: the level before a time, and the place behind one.
size_t logger_length(std::string_view text) {
  constexpr std::array<std::string_view, 4> kLevels = {"ERROR ", "WARNING ", "INFO ", "CRITICAL "};
  for (const std::string_view level : kLevels)
    if (text.starts_with(level) && timestamp_length(text.substr(level.size())) > 0) return level.size();
  const size_t end = text.starts_with('[') ? text.substr(0, 80).find(']') : std::string_view::npos;
  if (end == std::string_view::npos) return 0;
  const size_t colon = text.substr(0, end).find(".py:");
  return colon != std::string_view::npos && number_at(text.substr(colon + 4, end - colon - 4)) >= 0 ? end + 1 : 0;
}

size_t mark_length(std::string_view text) {
  constexpr std::array<std::string_view, 4> kMarks = {"│", "┃", "E   ", "❱"};
  for (const std::string_view mark : kMarks)
    if (text.starts_with(mark)) return mark.size();
  return 0;
}

size_t prefix_length(std::string_view text, std::optional<int>& rank) {
  if (const size_t length = rank_length(text, rank)) return length;
  if (const size_t length = timestamp_length(text)) return length;
  if (const size_t length = actor_length(text)) return length;
  if (const size_t length = logger_length(text)) return length;
  if (text.starts_with('[')) {  // "[2024-01-01 00:00:00,123]"
    const size_t length = timestamp_length(text.substr(1));
    if (length > 0 && 1 + length < text.size() && text[1 + length] == ']') return length + 2;
  }
  return 0;
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
    if (is_printable(c)) {
      out += c;
    } else if (c == '\t') {
      out += ' ';
    }
    ++at;
  }
  return is_utf8(out) ? out : utf8_lossy(out);
}

LogLine without_prefix(std::string_view text) {
  LogLine line;
  for (int most = 0; most < 8; ++most) {
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) break;
    const std::string_view rest = text.substr(first);
    size_t length = prefix_length(rest, line.rank);
    if (length == 0) length = mark_length(rest);
    if (length == 0) break;
    text = rest.substr(length);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  constexpr std::string_view kBar = "│";
  if (text.ends_with(kBar)) text.remove_suffix(kBar.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  line.text = text;
  return line;
}

void LogLines::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto end = std::ranges::find_if(bytes, [](char c) { return c == '\n' || c == '\r' || c == '\0'; });
    const auto length = std::min(static_cast<size_t>(end - bytes.begin()), kLongestLine - raw_.size());
    raw_.append(bytes.substr(0, length));
    if (length > 0) returned_ = false;
    bytes.remove_prefix(length);
    if (raw_.size() >= kLongestLine) {
      part_line();
    } else if (!bytes.empty()) {
      const char c = bytes[0];
      bytes.remove_prefix(1);
      if (c == '\0') continue;
      if (!(c == '\n' && returned_)) end_line();
      if (c == '\n') ++number_;
      returned_ = c == '\r';
    }
  }
}

void LogLines::finish() {
  if (!raw_.empty()) end_line();
}

void LogLines::part_line() {
  constexpr size_t kLookBack = 1024;
  const size_t space = raw_.rfind(' ');
  const size_t cut = space != std::string::npos && space + kLookBack > raw_.size() && space > 0 ? space : raw_.size();
  const std::string rest = raw_.substr(cut);
  raw_.resize(cut);
  end_line();
  raw_ = rest;
}

void LogLines::end_line() {
  const size_t first = raw_.find_first_not_of(' ');
  if (first != std::string::npos && (raw_[first] == '"' || raw_[first] == '{')) {
    const std::string text = unescaped(std::string_view(raw_).substr(raw_[first] == '"' ? first + 1 : first));
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      emit(std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
  } else {
    emit(raw_);
  }
  raw_.clear();
}

void LogLines::emit(std::string_view raw) {
  clean_ = without_escapes(raw);
  LogLine line = without_prefix(clean_);
  line.number = number_;
  sink_(line);
}

}  // namespace snug
