// JSON -> Document: RFC 8259 and nothing more, so that a comment or a trailing comma is told and not guessed at.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "recipe/dialects/document.h"

namespace snug::dialects {

namespace {

class Reader {
 public:
  explicit Reader(Document& document) : document_(document), text_(document.text) {}

  void read() {
    skip_space();
    if (peek() != '{') fail("a recipe is an object of keys and values");
    object("");
    skip_space();
    if (at_ < text_.size()) fail("there is more after the end of the object");
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& mend = {}) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    throw Error("not valid JSON: " + what, fmt::format("{}:{}", document_.where, line), mend);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
    if (peek() == '/' || peek() == '#') fail("JSON has no comments", "remove the comment");
  }

  void object(const std::string& prefix) {
    descend();
    for (skip_space(); peek() != '}'; skip_space()) {
      if (peek() != '"') fail("a key must stand in double quotes");
      Entry entry;
      advance_line();
      entry.line = line_;
      entry.name.begin = at_;
      const std::string key = string();
      if (key.size() > 200) fail("a key must have at most 200 bytes");
      entry.name.end = at_;
      entry.path = prefix + key;
      entry.in_flow = true;
      if (entry.path.size() > 1000) fail("the keys are too long");
      skip_space();
      if (peek() != ':') fail("a colon must follow the key");
      ++at_;
      skip_space();
      value(std::move(entry));
      if (!comma('}')) break;
    }
    --depth_;
    ++at_;
  }

  // After a value: true if a comma leads on; false at `close`, which is not passed.
  bool comma(char close) {
    skip_space();
    if (peek() == close) return false;
    if (peek() != ',') fail(fmt::format("',' or '{}' must follow a value", close));
    ++at_;
    skip_space();
    if (peek() == close) fail("a comma stands after the last value", "remove it");
    return true;
  }

  void value(Entry entry) {
    if (document_.entries.size() >= 20000) fail("the file holds too many keys");
    entry.value.begin = at_;
    if (peek() == '{' || peek() == '[') {
      const bool is_map = peek() == '{';
      entry.kind = is_map ? EntryKind::map : EntryKind::list;
      const std::string path = entry.path;
      document_.entries.push_back(std::move(entry));
      is_map ? object(path + ".") : array(path, document_.entries.size() - 1);
      return;
    }
    if (peek() == '"') {
      entry.values = {string()};
    } else if (const std::string word = literal(); word != "null") {
      entry.values = {word};
    }
    entry.value.end = at_;
    entry.in_place = true;
    document_.entries.push_back(std::move(entry));
  }

  void array(const std::string& path, size_t index) {
    descend();
    for (int64_t item = 0; skip_space(), peek() != ']'; ++item) {
      if (peek() == '{' || peek() == '[') {
        Entry entry;
        entry.path = fmt::format("{}.{}", path, item);
        if (entry.path.size() > 1000) fail("the keys are too long");
        value(std::move(entry));
      } else {
        const std::string word = peek() == '"' ? string() : literal();
        document_.entries[index].values.push_back(word);
      }
      if (!comma(']')) break;
    }
    --depth_;
    ++at_;
  }

  void descend() {
    if (++depth_ > 16) fail("it is nested too deeply", "no recipe needs that");
    ++at_;
  }

  std::string literal() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '+' ||
                                  text_[at_] == '-' || text_[at_] == '.'))
      ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    const bool number = !word.empty() && (word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0])) != 0);
    if (word != "true" && word != "false" && word != "null" && !number) {
      at_ = begin;
      fail("a value must be a string, a number, true, false, null, an object or an array");
    }
    return word;
  }

  std::string string() {
    std::string made;
    for (++at_; peek() != '"'; ++at_) {
      if (at_ >= text_.size() || peek() == '\n') fail("a string has no end");
      if (peek() != '\\') {
        made += peek();
        continue;
      }
      ++at_;
      constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
      if (peek() == 'u') {
        made += code_unit();
      } else if (const size_t which = kFrom.find(peek()); peek() != '\0' && which != std::string_view::npos) {
        made += kTo[which];
      } else {
        fail("a string holds an unknown escape");
      }
    }
    ++at_;
    return made;
  }

  // No key or value that is asked for has letters beyond ASCII, so that others are kept as "?".
  char code_unit() {
    unsigned code = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const char c = at_ + 1 < text_.size() ? text_[++at_] : '\0';
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) fail("\\u must have four hexadecimal digits");
      const int value = std::isdigit(static_cast<unsigned char>(c)) != 0 ? c - '0' : (std::tolower(c) - 'a' + 10);
      code = code * 16 + static_cast<unsigned>(value);
    }
    return code >= 0x20 && code < 0x7f ? static_cast<char>(code) : '?';
  }

  void advance_line() {
    for (; counted_ < at_; ++counted_)
      if (text_[counted_] == '\n') ++line_;
  }

  Document& document_;
  std::string_view text_;
  size_t at_ = 0, counted_ = 0;
  int64_t line_ = 1;
  int depth_ = 0;
};

}  // namespace

Document read_json(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::json, .text = std::string(text), .where = where};
  Reader(document).read();
  return document;
}

}  // namespace snug::dialects
