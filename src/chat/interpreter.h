#pragma once
// Executes a template: one pass over its statements, values as Python has them, scopes as Jinja has them (what is set within
// a loop, a macro or a block ends with it; namespaces do not). Every byte that it writes says which turn of a loop over the
// messages wrote it, if that is asked for. Bounded in steps, memory and depth (meter.h).

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat/callable.h"
#include "chat/syntax.h"

namespace snug::chat {

struct Scope;
using ScopeRef = std::shared_ptr<Scope>;

// Variables of a block, and the block around it.
struct Scope {
  explicit Scope(ScopeRef outer) : parent(std::move(outer)) {}
  void set(int32_t symbol, Value value);
  const Value* find(int32_t symbol) const;

  ScopeRef parent;
  std::vector<std::pair<int32_t, Value>> variables;
  Charge charge{128};
};

// An object that a template can change, and what may hold itself: the interpreter takes it apart in the end.
class Holder {
 public:
  Holder() = default;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  virtual ~Holder() = default;
  virtual void let_go() = 0;
};

struct Rendering {
  const Syntax& syntax;
  const Dict& variables;           // what the template is given
  std::function<std::tm()> clock;  // for strftime_now
  const std::unordered_map<const Dict*, int32_t>* messages =
      nullptr;  // if turns are to be told: each message and its number
};

class Interpreter {
 public:
  explicit Interpreter(const Rendering& rendering) : rendering_(rendering), syntax_(rendering.syntax) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  ~Interpreter();

  // The text of the whole template. Throws Error with file, line and expression.
  TextRef run();

  // What filters and functions need.
  Value call(const Value& callee, CallArguments& arguments);
  Value call_macro(const MacroSyntax& macro, const ScopeRef& closure, CallArguments& arguments);
  TextRef render_loop(const Statement& statement, const ScopeRef& scope, const Value& items, int64_t depth);
  std::tm now() const { return rendering_.clock(); }
  void keep(std::shared_ptr<Holder> holder);

 private:
  enum class Flow : uint8_t { on, stop, next_item };
  class Inside;

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow condition(const Statement& statement);
  Flow loop(const Statement& statement, const Value& items, int64_t depth);
  Flow iteration(const Statement& statement, const Value& item);
  SequenceRef selected(const Statement& statement, const SequenceRef& items);
  void assign(const Expression& target, const Value& value);
  void assign_block(const Statement& statement);
  void define_macro(const Statement& statement);
  void call_block(const Statement& statement);
  void with(const Statement& statement);
  void generation(const Statement& statement);
  void filter_block(const Statement& statement);
  void write(const Value& value);
  // What `body` writes, in a scope of its own.
  TextRef captured(const Body& body, const ScopeRef& parent);
  void bind_parameters(const MacroSyntax& macro, CallArguments& arguments);

  Value evaluate(const Expression& node);
  Value evaluate_parts(const Expression& node);
  Value name(const Expression& node);
  Value item(const Expression& node);
  Value slice(const Expression& node);
  Value dict(const Expression& node);
  Value call(const Expression& node, const Value* caller);
  Value filter(const Expression& node, const Value* block);
  Value concatenate(const Expression& node);
  Value compare(const Expression& node);
  CallArguments arguments(const Arguments& given);
  std::vector<Value> values(const std::vector<ExpressionPtr>& parts);
  int32_t message_of(const Value& value) const;
  [[noreturn]] void refuse(const Error& error) const;

  const Rendering rendering_;
  const Syntax& syntax_;
  ScopeRef scope_;
  TextBuilder* out_ = nullptr;
  Tag tag_;  // of what is written now
  int32_t generations_ = 0;
  int depth_ = 0;
  int64_t recursion_ = 0;  // of loops
  const Place* site_ = nullptr;
  std::vector<std::shared_ptr<Holder>> holders_;
};

}  // namespace snug::chat
