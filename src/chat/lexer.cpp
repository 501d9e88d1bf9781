#include "chat/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/quote.h"
#include "base/utf8.h"
#include "chat/characters.h"
#include "chat/string_literal.h"

namespace snug::chat {
namespace {

// \w of Python's re.
bool is_word(char32_t character) { return character == '_' || is_alnum(character); }

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : source_(source), where_(where) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_and_tag();
    push(TokenType::end, at_, at_);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw Error(what, fmt::format("{}:{}", where_, line_at(at_))); }

  uint32_t line_at(size_t offset) const {
    while (counted_ < std::min(offset, source_.size())) line_ += source_[counted_++] == '\n' ? 1 : 0;
    return line_;
  }

  Token& push(TokenType type, size_t begin, size_t end) {
    Token& token = tokens_.emplace_back();
    token.type = type;
    token.line = line_at(begin);
    token.begin = static_cast<uint32_t>(begin);
    token.end = static_cast<uint32_t>(end);
    return token;
  }

  bool next_is(std::string_view text, size_t at) const {
    return source_.substr(std::min(at, source_.size())).starts_with(text);
  }
  char peek(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  size_t skip_space(size_t at) const {
    while (at < source_.size() && is_space(decode(source_.substr(at)))) at += utf8_length(source_[at]);
    return at;
  }

  static size_t trimmed_end(std::string_view text) {
    size_t end = text.size();
    while (end > 0) {
      size_t begin = end - 1;
      while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
      if (!is_space(decode(text.substr(begin)))) break;
      end = begin;
    }
    return end;
  }

  // Text from `begin` to a tag at `end` that strips by `sign`; output tags do not strip their line.
  void data(size_t begin, size_t end, char sign, bool output) {
    std::string_view text = source_.substr(begin, end - begin);
    if (sign == '-') {
      text = text.substr(0, trimmed_end(text));
    } else if (sign != '+' && !output) {
      const size_t line_break = text.rfind('\n');
      const size_t line = line_break == std::string_view::npos ? 0 : line_break + 1;
      if ((line > 0 || line_starting_) && trimmed_end(text.substr(line)) == 0) text = text.substr(0, line);
    }
    if (!text.empty()) push(TokenType::data, begin, begin + text.size()).text = std::string(text);
  }

  // The text up to the next tag, and that tag.
  void text_and_tag() {
    const size_t begin = at_;
    size_t open = begin;
    for (;; ++open) {
      open = source_.find('{', open);
      if (open == std::string_view::npos) return data(begin, at_ = source_.size(), '+', true);
      if (const char kind = peek(open + 1); kind == '{' || kind == '%' || kind == '#') break;
    }
    const char kind = peek(open + 1);
    const char sign = peek(open + 2) == '-' || peek(open + 2) == '+' ? peek(open + 2) : '\0';
    size_t inside = open + (sign != '\0' ? 3 : 2);
    data(begin, open, sign, kind == '{');
    at_ = open;
    if (kind == '#') return comment(inside);
    if (kind == '%') {
      if (const size_t raw = raw_begins(inside); raw != 0) return raw_block(raw);
    }
    push(kind == '{' ? TokenType::output_begin : TokenType::tag_begin, open, inside);
    at_ = inside;
    line_starting_ = false;
    tag(kind == '{');
  }

  // Where the text after "{% raw %}" begins, or 0.
  size_t raw_begins(size_t inside) const {
    size_t at = skip_space(inside);
    if (!next_is("raw", at)) return 0;
    at = skip_space(at + 3);
    if (next_is("-%}", at)) return skip_space(at + 3);
    return next_is("%}", at) ? at + 2 : 0;
  }

  void close_at(size_t end) {
    at_ = end;
    line_starting_ = source_[end - 1] == '\n';
  }

  // The end of a tag that closes with `close` ("%}"): "+%}", "-%}" with what space follows, or "%}" with one line break.
  size_t closed(size_t at, std::string_view close, bool trims) const {
    if (peek(at) == '-' && next_is(close, at + 1)) return skip_space(at + 3);
    if (trims && peek(at) == '+' && next_is(close, at + 1)) return at + 3;
    if (!next_is(close, at)) return 0;
    return trims && peek(at + 2) == '\n' ? at + 3 : at + 2;
  }

  void comment(size_t inside) {
    for (size_t at = inside; (at = source_.find('#', at)) != std::string_view::npos; ++at) {
      if (peek(at + 1) != '}') continue;
      const bool signed_close = at > inside && (source_[at - 1] == '-' || source_[at - 1] == '+');
      return close_at(closed(signed_close ? at - 1 : at, "#}", true));
    }
    if (inside == source_.size()) return close_at(inside);  // as Jinja has it
    refuse("a comment is not closed");
  }

  void raw_block(size_t begin) {
    line_starting_ = peek(begin - 1) == '\n';
    for (size_t open = begin; (open = source_.find("{%", open)) != std::string_view::npos; ++open) {
      const char sign = peek(open + 2) == '-' || peek(open + 2) == '+' ? peek(open + 2) : '\0';
      size_t at = skip_space(open + (sign != '\0' ? 3 : 2));
      if (!next_is("endraw", at)) continue;
      const size_t end = closed(skip_space(at + 6), "%}", true);
      if (end == 0) continue;
      data(begin, open, sign, false);
      return close_at(end);
    }
    refuse("{% raw %} is not closed");
  }

  // Tokens up to the end of the tag.
  void tag(bool output) {
    std::string open_brackets;
    while (at_ < source_.size()) {
      if (open_brackets.empty()) {
        if (const size_t end = closed(at_, output ? "}}" : "%}", !output); end != 0) {
          push(output ? TokenType::output_end : TokenType::tag_end, at_, end);
          return close_at(end);
        }
      }
      if (const size_t after = skip_space(at_); after != at_) {
        at_ = after;
      } else if (is_ascii_digit(source_[at_])) {
        number();
      } else if (is_word(decode(source_.substr(at_)))) {
        name();
      } else if (source_[at_] == '"' || source_[at_] == '\'') {
        string();
      } else {
        operation(open_brackets);
      }
    }
    // the source ends inside a tag: the parser says what it waits for
  }

  void name() {
    size_t end = at_;
    while (end < source_.size() && is_word(decode(source_.substr(end)))) end += utf8_length(source_[end]);
    const std::string_view text = source_.substr(at_, end - at_);
    if (is_numeric(decode(text)) && !is_alpha(decode(text))) refuse("invalid character in identifier");
    push(TokenType::name, at_, end).text = std::string(text);
    at_ = end;
  }

  void string() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse("a string is not closed");
    std::string text = unescape(source_.substr(at_ + 1, end - at_ - 1), fmt::format("{}:{}", where_, line_at(at_)));
    push(TokenType::string, at_, end + 1).text = std::move(text);
    at_ = end + 1;
  }

  // The end of digits that `accept`s, with single underscores between them; `at` itself if there are none.
  template <class Accept>
  size_t digits(size_t at, Accept accept, bool underscore_first = false) const {
    size_t end = at;
    for (size_t next = at;; end = next) {
      if (peek(next) == '_' && (next != at || underscore_first)) ++next;
      if (!accept(peek(next))) return end;
      ++next;
    }
  }

  // The end of the floating-point number at `begin`, or 0.
  size_t real_end(size_t begin) const {
    if (begin > 0 && source_[begin - 1] == '.') return 0;
    size_t end = digits(begin, is_ascii_digit);
    bool real = false;
    if (peek(end) == '.' && is_ascii_digit(peek(end + 1))) {
      end = digits(end + 1, is_ascii_digit);
      real = true;
    }
    if (peek(end) == 'e' || peek(end) == 'E') {
      const size_t exponent = end + (peek(end + 1) == '+' || peek(end + 1) == '-' ? 2 : 1);
      if (is_ascii_digit(peek(exponent))) return digits(exponent, is_ascii_digit);
    }
    return real ? end : 0;
  }

  void number() {
    if (const size_t end = real_end(at_); end != 0) {
      const std::string text = without_underscores(end);
      push(TokenType::number, at_, end).value = Value::real(std::strtod(text.c_str(), nullptr));
      at_ = end;
      return;
    }
    const auto [base, end] = integer_end();
    const std::string text = without_underscores(end);
    int64_t whole = 0;
    const char* first = text.data() + (base == 10 ? 0 : 2);
    if (std::from_chars(first, text.data() + text.size(), whole, base).ec != std::errc{}) {
      refuse(fmt::format("the whole number {} does not fit in 63 bits", quote(text)));
    }
    push(TokenType::number, at_, end).value = Value::integer(whole);
    at_ = end;
  }

  std::pair<int, size_t> integer_end() const {
    if (source_[at_] != '0') return {10, digits(at_, is_ascii_digit)};
    const char letter = static_cast<char>(peek(at_ + 1) | 0x20);
    const int base = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'x' ? 16 : 10;
    if (base != 10) {
      const auto accept = [base](char c) {
        const char low = static_cast<char>(c | 0x20);
        return (c >= '0' && c < '0' + std::min(base, 10)) || (base == 16 && low >= 'a' && low <= 'f');
      };
      if (const size_t end = digits(at_ + 2, accept, true); end != at_ + 2) return {base, end};
    }
    return {10, digits(at_, [](char c) { return c == '0'; })};
  }

  std::string without_underscores(size_t end) const {
    std::string text(source_.substr(at_, end - at_));
    std::erase(text, '_');
    return text;
  }

  void operation(std::string& open_brackets) {
    static constexpr std::string_view kPairs[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t length = 1;
    for (const std::string_view pair : kPairs)
      if (next_is(pair, at_)) length = 2;
    const std::string_view text = source_.substr(at_, length);
    if (length == 1 && std::string_view("+-/*%~[](){}><=.:|,;").find(text[0]) == std::string_view::npos) {
      refuse(fmt::format("unexpected character {}", quote(source_.substr(at_, utf8_length(text[0])))));
    }
    if (text == "(" || text == "[" || text == "{") open_brackets += text == "(" ? ')' : text == "[" ? ']' : '}';
    if (text == ")" || text == "]" || text == "}") {
      if (open_brackets.empty() || open_brackets.back() != text[0]) refuse(fmt::format("unexpected '{}'", text));
      open_brackets.pop_back();
    }
    push(TokenType::op, at_, at_ + length).text = std::string(text);
    at_ += length;
  }

  std::string_view source_;
  const std::string& where_;
  size_t at_ = 0;
  bool line_starting_ = true;
  mutable size_t counted_ = 0;
  mutable uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::vector<Token> tokenize(std::string_view source, const std::string& where) { return Lexer(source, where).run(); }

}  // namespace snug::chat
