#include "chat/parser.h"

#include "base/utf8.h"
#include "chat/callable.h"
#include "chat/expression_parser.h"

namespace snug::chat {
namespace {

constexpr size_t kMostSource = size_t{1} << 20U;  // bytes
constexpr int kDeepestBlocks = 60;                // tags in tags

class Parser {
 public:
  explicit Parser(Syntax& syntax)
      : syntax_(syntax), tokens_(syntax.source, syntax.where), expressions_(tokens_, syntax.symbols) {
    for (const char* name : {"loop", "caller", "varargs", "kwargs"}) expressions_.symbol(name);
  }

  void run() {
    syntax_.body = body({});
    if (!tokens_.is(TokenType::end)) tokens_.refuse(fmt::format("unexpected {}", tokens_.shown()));
    expressions_.refuse_unknown();
  }

 private:
  using Type = Statement::Type;
  using Ends = std::initializer_list<std::string_view>;

  // While it lives, missing filters are or are not errors before they are reached.
  class Softness {
   public:
    Softness(ExpressionParser& parser, bool soft) : parser_(parser), outer_(std::exchange(parser.soft, soft)) {}
    Softness(const Softness&) = delete;
    Softness& operator=(const Softness&) = delete;
    ~Softness() { parser_.soft = outer_; }

   private:
    ExpressionParser& parser_;
    bool outer_;
  };

  Statement make(Type type) const {
    Statement statement;
    statement.type = type;
    statement.place = tokens_.place();
    return statement;
  }

  // Statements up to a tag that begins with one of `ends`, which is left as the current token.
  Body body(Ends ends) {
    if (++depth_ > kDeepestBlocks) tokens_.refuse("the template nests too deeply");
    Body statements;
    for (;;) {
      if (tokens_.is(TokenType::data)) {
        Statement statement = make(Type::data);
        statement.text = make_text(tokens_.next().text);
        statements.push_back(std::move(statement));
      } else if (tokens_.is(TokenType::output_begin)) {
        tokens_.next();
        Statement statement = make(Type::output);
        statement.expressions.push_back(expressions_.tuple());
        tokens_.expect(TokenType::output_end, "}}");
        statements.push_back(std::move(statement));
      } else if (tokens_.is(TokenType::tag_begin)) {
        tokens_.next();
        for (const std::string_view end : ends) {
          if (tokens_.is_name(end)) {
            --depth_;
            return statements;
          }
        }
        statements.push_back(statement());
        tokens_.expect(TokenType::tag_end, "%}");
      } else {
        break;
      }
    }
    if (ends.size() > 0) tokens_.refuse(fmt::format("{{% {} %}} is missing", *(ends.end() - 1)));
    --depth_;
    return statements;
  }

  // The statements between the end of this tag and one of `ends`.
  Body inner(Ends ends) {
    tokens_.skip_op(":");
    tokens_.expect(TokenType::tag_end, "%}");
    return body(ends);
  }

  Statement statement() {
    const Token& tag = tokens_.current();
    if (tag.type != TokenType::name) tokens_.refuse("the name of a tag is missing");
    if (tag.text == "if") return condition();
    if (tag.text == "for") return loop();
    if (tag.text == "set") return assignment();
    if (tag.text == "macro") return macro();
    if (tag.text == "call") return call_block();
    if (tag.text == "filter") return filter_block();
    if (tag.text == "with") return with();
    if (tag.text == "print") return print();
    if (tag.text == "block") return block();
    if (tag.text == "generation") {
      syntax_.has_generation = true;
      return simple_block(Type::generation, "endgeneration");
    }
    if (tag.text == "break" || tag.text == "continue") {
      Statement result = make(tag.text == "break" ? Type::stop : Type::next_item);
      if (loops_ == 0) tokens_.refuse(fmt::format("'{}' stands outside of a loop", tag.text));
      tokens_.next();
      return result;
    }
    for (const std::string_view known : {"include", "import", "from", "extends", "autoescape", "do", "trans", "debug"}) {
      if (tag.text == known) tokens_.refuse(fmt::format("the tag {} is not supported in chat templates", quote(tag.text)));
    }
    tokens_.refuse(fmt::format("unknown tag {}", quote(tag.text)));
  }

  Statement condition() {
    Statement result = make(Type::condition);
    tokens_.next();
    for (;;) {
      result.expressions.push_back(expressions_.tuple(false));
      const Softness soft(expressions_, true);
      result.bodies.push_back(inner({"elif", "else", "endif"}));
      if (tokens_.skip_name("elif")) continue;
      if (tokens_.skip_name("else")) result.otherwise = inner({"endif"});
      tokens_.expect_name("endif");
      return result;
    }
  }

  Statement loop() {
    Statement result = make(Type::loop);
    tokens_.next();
    result.target = expressions_.target(false, {"in"});
    tokens_.expect_name("in");
    result.expressions.push_back(expressions_.tuple(false, {"recursive"}));
    result.expressions.emplace_back();
    if (tokens_.skip_name("if")) result.expressions[1] = expressions_.expression();
    result.recursive = tokens_.skip_name("recursive");
    const Softness soft(expressions_, false);
    ++loops_;
    result.bodies.push_back(inner({"else", "endfor"}));
    --loops_;
    if (tokens_.skip_name("else")) result.otherwise = inner({"endfor"});
    tokens_.expect_name("endfor");
    return result;
  }

  Statement assignment() {
    Statement result = make(Type::assign);
    tokens_.next();
    result.target = expressions_.target(true);
    if (tokens_.skip_op("=")) {
      result.expressions.push_back(expressions_.tuple());
      return result;
    }
    if (result.target->type == Expression::Type::tuple) tokens_.refuse("a block cannot be assigned to several names");
    result.type = Type::assign_block;
    result.expressions.push_back(expressions_.filters(nullptr));
    return closed_body(std::move(result), "endset");
  }

  // The rest of a tag whose body has a scope of its own.
  Statement closed_body(Statement result, std::string_view end) {
    const Softness soft(expressions_, false);
    const int loops = std::exchange(loops_, 0);
    result.bodies.push_back(inner({end}));
    loops_ = loops;
    tokens_.next();
    return result;
  }

  void signature(MacroSyntax& macro) {
    tokens_.expect_op("(");
    while (!tokens_.is_op(")")) {
      if (!macro.parameters.empty()) tokens_.expect_op(",");
      Parameter parameter;
      parameter.name = tokens_.expect_any_name();
      parameter.symbol = expressions_.symbol(parameter.name);
      if (tokens_.skip_op("=")) {
        parameter.otherwise = expressions_.expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().otherwise) {
        tokens_.refuse("a parameter without default follows one with a default");
      }
      if (parameter.name == "caller" && !parameter.otherwise) tokens_.refuse("the parameter 'caller' needs a default");
      if (macro.parameters.size() >= kMostNamed) tokens_.refuse("a macro has more than 1000 parameters");
      macro.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_op(")");
  }

  void macro_body(MacroSyntax& macro, std::string_view end) {
    const Softness soft(expressions_, false);
    const int loops = std::exchange(loops_, 0);
    const size_t before = expressions_.names_read();
    macro.body = inner({end});
    loops_ = loops;
    tokens_.next();
    macro.uses_caller = expressions_.read_since(before, "caller");
    macro.uses_varargs = expressions_.read_since(before, "varargs");
    macro.uses_kwargs = expressions_.read_since(before, "kwargs");
  }

  Statement macro() {
    Statement result = make(Type::macro);
    tokens_.next();
    result.macro = std::make_unique<MacroSyntax>();
    result.macro->name = tokens_.expect_any_name();
    result.symbol = expressions_.symbol(result.macro->name);
    signature(*result.macro);
    macro_body(*result.macro, "endmacro");
    return result;
  }

  Statement call_block() {
    Statement result = make(Type::call_block);
    tokens_.next();
    result.macro = std::make_unique<MacroSyntax>();
    result.macro->name = "caller";
    if (tokens_.is_op("(")) signature(*result.macro);
    result.expressions.push_back(expressions_.expression());
    if (result.expressions[0]->type != Expression::Type::call) tokens_.refuse("a call should stand in {% call %}");
    macro_body(*result.macro, "endcall");
    return result;
  }

  Statement filter_block() {
    Statement result = make(Type::filter_block);
    tokens_.next();
    result.expressions.push_back(expressions_.filters(nullptr, true));
    return closed_body(std::move(result), "endfilter");
  }

  Statement with() {
    Statement result = make(Type::with);
    tokens_.next();
    while (!tokens_.is(TokenType::tag_end)) {
      if (!result.targets.empty()) tokens_.expect_op(",");
      result.targets.push_back(expressions_.target(false));
      tokens_.expect_op("=");
      result.expressions.push_back(expressions_.expression());
    }
    const Softness soft(expressions_, false);
    result.bodies.push_back(inner({"endwith"}));
    tokens_.next();
    return result;
  }

  Statement print() {
    Statement result = make(Type::output);
    tokens_.next();
    while (!tokens_.is(TokenType::tag_end)) {
      if (!result.expressions.empty()) tokens_.expect_op(",");
      result.expressions.push_back(expressions_.expression());
    }
    return result;
  }

  Statement block() {
    Statement result = make(Type::scope);
    tokens_.next();
    const std::string name = tokens_.expect_any_name();
    tokens_.skip_name("scoped");
    if (tokens_.is_name("required")) tokens_.refuse("required blocks need another template");
    result = closed_body(std::move(result), "endblock");
    tokens_.skip_name(name);
    return result;
  }

  Statement simple_block(Type type, std::string_view end) {
    Statement result = make(type);
    tokens_.next();
    return closed_body(std::move(result), end);
  }

  Syntax& syntax_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Syntax parse_template(std::string_view source, std::string where) {
  if (source.size() > kMostSource)
    throw Error("the chat template is longer than 1 MiB", where, "use the template as published");
  if (!is_utf8(source)) throw Error("the chat template is not valid UTF-8", where);
  Syntax syntax;
  syntax.source = normalize_newlines(source);
  syntax.where = std::move(where);
  Parser(syntax).run();
  return syntax;
}

}  // namespace snug::chat
