#pragma once
// The tokens of a template one after the other, and the errors that name their place.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "chat/lexer.h"
#include "chat/syntax.h"

namespace snug::chat {

class TokenStream {
 public:
  TokenStream(std::string_view source, const std::string& where)
      : source_(source), where_(where), tokens_(tokenize(source, where)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }

  bool is(TokenType type) const { return current().type == type; }
  bool is_op(std::string_view text) const { return is(TokenType::op) && current().text == text; }
  bool is_name(std::string_view text) const { return is(TokenType::name) && current().text == text; }
  bool skip_op(std::string_view text) {
    if (!is_op(text)) return false;
    next();
    return true;
  }
  bool skip_name(std::string_view text) {
    if (!is_name(text)) return false;
    next();
    return true;
  }

  void expect_op(std::string_view text) {
    if (!skip_op(text)) refuse(fmt::format("'{}' should stand before {}", text, shown()));
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) refuse(fmt::format("'{}' should stand before {}", text, shown()));
  }
  void expect(TokenType type, std::string_view name) {
    if (!is(type)) refuse(fmt::format("'{}' should stand before {}", name, shown()));
    next();
  }
  std::string expect_any_name() {
    if (!is(TokenType::name)) refuse(fmt::format("a name should stand before {}", shown()));
    return next().text;
  }

  // The current token, for errors.
  std::string shown() const {
    if (is(TokenType::end)) return "the end of the template";
    return quote(source_.substr(current().begin, std::min<size_t>(current().end - current().begin, 40)));
  }
  Place place() const { return {current().line, current().begin, current().end}; }
  uint32_t last_end() const { return at_ == 0 ? 0 : tokens_[at_ - 1].end; }

  [[noreturn]] void refuse(const std::string& what, const std::string& mend = {}) const {
    refuse_at(current().line, what, mend);
  }
  [[noreturn]] void refuse_at(uint32_t line, const std::string& what, const std::string& mend = {}) const {
    throw Error(what, fmt::format("{}:{}", where_, line), mend);
  }

 private:
  std::string_view source_;
  const std::string& where_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace snug::chat
