#include "recipe/dialects/python_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace snug::dialects {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The longest first.
constexpr std::array<std::string_view, 24> kSigns = {"**=", "//=", ">>=", "<<=", "...", "**", "//", ">>",
                                                     "<<",  "->",  ":=",  "==",  "!=",  "<=", ">=", "+=",
                                                     "-=",  "*=",  "/=",  "%=",  "&=",  "|=", "^=", "@="};

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : source_(source), where_(where) {}

  std::vector<PythonToken> run() {
    while (at_ < source_.size()) next();
    end_line();
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }

  void add(PythonKind kind, size_t begin, std::string text, bool exact = true) {
    const bool first = tokens_.empty() || tokens_.back().kind == PythonKind::line_end;
    tokens_.push_back({kind, std::move(text), {begin, at_}, exact, first ? blanks_before(begin) : 0});
  }

  // Of a token that begins a statement; a tab goes to the next multiple of eight.
  int64_t blanks_before(size_t begin) const {
    const size_t line = begin == 0 ? std::string_view::npos : source_.rfind('\n', begin - 1);
    int64_t column = 0;
    for (size_t at = line == std::string_view::npos ? 0 : line + 1; at < begin; ++at)
      column = source_[at] == '\t' ? (column / 8 + 1) * 8 : column + 1;
    return column;
  }

  void end_line() {
    if (!tokens_.empty() && tokens_.back().kind != PythonKind::line_end) add(PythonKind::line_end, at_, {});
  }

  void next() {
    const char c = peek();
    if (c == '\n') {
      if (depth_ == 0) end_line();
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\\') {
      at_ += c == '\\' && peek(1) == '\n' ? 2 : 1;
    } else if (c == '#') {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else if (c == '"' || c == '\'') {
      string(at_, "");
    } else if (is_letter(c)) {
      word();
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else {
      sign();
    }
  }

  // A name, or the letters before a string.
  void word() {
    const size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    std::string text(source_.substr(begin, at_ - begin));
    const bool prefix = text.size() <= 2 && text.find_first_not_of("rRbBfFuU") == std::string::npos;
    if (prefix && (peek() == '"' || peek() == '\'')) return string(begin, text);
    add(PythonKind::name, begin, std::move(text));
  }

  void number() {
    const size_t begin = at_;
    while (is_letter(peek()) || is_digit(peek()) || peek() == '.' ||
           ((peek() == '-' || peek() == '+') && (source_[at_ - 1] == 'e' || source_[at_ - 1] == 'E')))
      ++at_;
    std::string text(source_.substr(begin, at_ - begin));
    std::erase(text, '_');
    add(PythonKind::number, begin, std::move(text));
  }

  void sign() {
    const size_t begin = at_;
    const std::string_view rest = source_.substr(at_);
    const auto longer = std::ranges::find_if(kSigns, [&](std::string_view s) { return rest.starts_with(s); });
    const std::string_view text = longer != kSigns.end() ? *longer : rest.substr(0, 1);
    if (text == "(" || text == "[" || text == "{") ++depth_;
    if ((text == ")" || text == "]" || text == "}") && depth_ > 0) --depth_;
    at_ += text.size();
    add(PythonKind::sign, begin, std::string(text));
  }

  void string(size_t begin, std::string_view prefix) {
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const bool raw = prefix.find_first_of("rR") != std::string_view::npos;
    const bool filled = prefix.find_first_of("fF") != std::string_view::npos;
    const std::string_view end = source_.substr(at_, triple ? 3 : 1);
    at_ += end.size();
    std::string text;
    bool exact = true;
    while (!source_.substr(at_).starts_with(end)) {
      if (at_ >= source_.size() || (!triple && peek() == '\n')) {
        const auto line = std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(begin), '\n') + 1;
        throw Error("a string does not end", fmt::format("{}:{}", where_, line), "is this Python?");
      }
      if (peek() == '\\' && at_ + 1 < source_.size()) {
        escape(raw, text);
      } else {
        exact = exact && !(filled && peek() == '{');
        text += source_[at_++];
      }
    }
    at_ += end.size();
    add(PythonKind::string, begin, std::move(text), exact);
  }

  // Of escapes the few that stand in names and numbers of settings; others stay as they are written.
  void escape(bool raw, std::string& text) {
    const char next = peek(1);
    const char meant = next == 'n' ? '\n' : next == 't' ? '\t' : next;
    if (!raw && next == '\n') {
      // the line goes on
    } else if (!raw && (next == 'n' || next == 't' || next == '\\' || next == '\'' || next == '"')) {
      text += meant;
    } else {
      text.append({'\\', next});
    }
    at_ += 2;
  }

  std::string_view source_;
  const std::string& where_;
  size_t at_ = 0;
  int64_t depth_ = 0;  // of brackets
  std::vector<PythonToken> tokens_;
};

}  // namespace

std::vector<PythonToken> python_tokens(std::string_view source, const std::string& where) {
  return Lexer(source, where).run();
}

}  // namespace snug::dialects
