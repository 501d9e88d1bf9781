#pragma once
// Expressions of templates: from tokens to a tree of bounded depth.

#include <initializer_list>
#include <string_view>
#include <unordered_map>

#include "chat/syntax.h"
#include "chat/token_stream.h"

namespace snug::chat {

constexpr int kDeepestExpression = 200;  // of a tree, and of brackets in brackets

// Counts brackets in brackets while it lives.
class Nesting {
 public:
  Nesting(int& depth, const TokenStream& tokens) : depth_(depth) {
    if (++depth_ > kDeepestExpression) {
      --depth_;
      tokens.refuse("the template nests too deeply");
    }
  }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  ~Nesting() { --depth_; }

 private:
  int& depth_;
};

// The operands of a node.
template <class... Parts>
std::vector<ExpressionPtr> parts_of(Parts... parts) {
  std::vector<ExpressionPtr> list;
  (list.push_back(std::move(parts)), ...);
  return list;
}

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, std::vector<std::string>& symbols) : tokens_(tokens), symbols_(symbols) {}

  ExpressionPtr expression(bool with_condition = true);
  // An expression, or several with commas between them: a tuple. It ends before one of `ends` too.
  ExpressionPtr tuple(bool with_condition = true, std::initializer_list<std::string_view> ends = {},
                      bool parentheses = false);
  // What can be assigned to: names and tuples of them; attributes of namespaces if `with_namespace`.
  ExpressionPtr target(bool with_namespace, std::initializer_list<std::string_view> ends = {});
  // "|filter|filter" over `value`, which is null in blocks; `inside`: the first "|" is already gone.
  ExpressionPtr filters(ExpressionPtr value, bool inside = false);

  int32_t symbol(const std::string& name);
  // Names that were read since the count was `since`.
  size_t names_read() const { return names_read_.size(); }
  bool read_since(size_t since, std::string_view name) const;

  // While this is true a filter or test that does not exist is an error only when it is reached, as in Jinja.
  bool soft = false;
  // Throws Error for the first filter or test that does not exist and stands where it is always reached.
  void refuse_unknown() const;

 private:
  using Type = Expression::Type;
  using Rule = ExpressionPtr (ExpressionParser::*)();

  ExpressionPtr make(Type type, const Place& from, std::vector<ExpressionPtr> parts = {});
  ExpressionPtr finish(ExpressionPtr node);
  ExpressionPtr condition();
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr compare();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);
  ExpressionPtr primary(bool with_namespace = false);
  ExpressionPtr name(bool with_namespace);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr postfix_filters(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr subscribed();
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr node);
  Arguments arguments();
  void argument(Arguments& arguments, bool& named_seen);
  ExpressionPtr chain(Rule next, std::initializer_list<std::pair<std::string_view, Operator>> operators);
  bool ends_tuple(std::initializer_list<std::string_view> ends) const;
  std::string dotted_name();

  TokenStream& tokens_;
  std::vector<std::string>& symbols_;
  std::unordered_map<std::string, int32_t> symbol_numbers_;
  std::vector<std::string> names_read_;
  int nesting_ = 0;

  struct Unknown {
    uint32_t line;
    std::string what;
  };
  void note_unknown(std::string_view kind, const std::string& name);
  std::vector<Unknown> unknown_;
};

}  // namespace snug::chat
