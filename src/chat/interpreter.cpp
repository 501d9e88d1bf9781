#include "chat/interpreter.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "chat/attributes.h"
#include "chat/loop.h"
#include "chat/macro.h"
#include "chat/namespace.h"
#include "chat/python_text.h"

namespace snug::chat {
namespace {

constexpr int kDeepestCall = 500;  // expressions, statements and macros in one another

}  // namespace

void Scope::set(int32_t symbol, Value value) {
  for (auto& [known, old] : variables) {
    if (known != symbol) continue;
    old = std::move(value);
    return;
  }
  charge.add(sizeof(variables[0]));
  variables.emplace_back(symbol, std::move(value));
}

const Value* Scope::find(int32_t symbol) const {
  constexpr size_t kPerStep = 64;
  size_t seen = 0;
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [known, value] : scope->variables)
      if (known == symbol) return &value;
    seen += scope->variables.size();
    if (seen > kPerStep) spend(static_cast<int64_t>(seen / kPerStep));
  }
  return nullptr;
}

// A scope, a place to write or a turn that holds while this lives.
class Interpreter::Inside {
 public:
  explicit Inside(Interpreter& interpreter, TextBuilder* out = nullptr)
      : interpreter_(interpreter), scope_(interpreter.scope_), out_(interpreter.out_), tag_(interpreter.tag_) {
    if (out != nullptr) interpreter.out_ = out;
    if (++interpreter.depth_ > kDeepestCall) {
      --interpreter.depth_;
      throw Error("the template calls itself too deeply");
    }
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() {
    interpreter_.scope_ = std::move(scope_);
    interpreter_.out_ = out_;
    interpreter_.tag_ = tag_;
    --interpreter_.depth_;
  }

 private:
  Interpreter& interpreter_;
  ScopeRef scope_;
  TextBuilder* out_;
  Tag tag_;
};

Interpreter::~Interpreter() {
  // Namespaces and closures may hold one another in circles, or in chains too long for nested destructors.
  for (const auto& holder : holders_) holder->let_go();
}

void Interpreter::keep(std::shared_ptr<Holder> holder) { holders_.push_back(std::move(holder)); }

TextRef Interpreter::run() {
  scope_ = std::make_shared<Scope>(nullptr);
  TextBuilder out;
  out_ = &out;
  try {
    execute(syntax_.body);
  } catch (const Error& error) {
    refuse(error);
  }
  return out.take();
}

void Interpreter::refuse(const Error& error) const {
  if (!error.where().empty() || site_ == nullptr) throw;
  const std::string_view source = std::string_view(syntax_.source).substr(site_->begin, site_->end - site_->begin);
  throw Error(fmt::format("{} in {}", error.problem(), quote(source)), fmt::format("{}:{}", syntax_.where, site_->line),
              error.mend());
}

Interpreter::Flow Interpreter::execute(const Body& body) {
  for (const Statement& statement : body) {
    const Flow flow = execute(statement);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  using Type = Statement::Type;
  site_ = &statement.place;
  spend(1);
  switch (statement.type) {
    case Type::data: out_->add(*statement.text, tag_); break;
    case Type::output:
      for (const auto& expression : statement.expressions) {
        const Value value = evaluate(*expression);
        site_ = &expression->place;
        write(value);
      }
      break;
    case Type::condition: return condition(statement);
    case Type::loop: return loop(statement, evaluate(*statement.expressions[0]), 0);
    case Type::assign: assign(*statement.target, evaluate(*statement.expressions[0])); break;
    case Type::assign_block: assign_block(statement); break;
    case Type::macro: define_macro(statement); break;
    case Type::call_block: call_block(statement); break;
    case Type::filter_block: filter_block(statement); break;
    case Type::with: with(statement); break;
    case Type::scope: write(Value::text(captured(statement.bodies[0], scope_))); break;
    case Type::generation: generation(statement); break;
    case Type::stop: return Flow::stop;
    case Type::next_item: return Flow::next_item;
  }
  return Flow::on;
}

void Interpreter::write(const Value& value) { write_str(*out_, value, tag_); }

Interpreter::Flow Interpreter::condition(const Statement& statement) {
  const Inside inside(*this);
  for (size_t i = 0; i < statement.expressions.size(); ++i)
    if (truth(evaluate(*statement.expressions[i]))) return execute(statement.bodies[i]);
  return execute(statement.otherwise);
}

int32_t Interpreter::message_of(const Value& value) const {
  if (rendering_.messages == nullptr || !value.is(Kind::dict)) return -1;
  const auto found = rendering_.messages->find(value.dict().get());
  return found == rendering_.messages->end() ? -1 : found->second;
}

// The items that pass the loop's own "if".
SequenceRef Interpreter::selected(const Statement& statement, const SequenceRef& items) {
  if (!statement.expressions[1]) return items;
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    const Inside inside(*this);
    scope_ = std::make_shared<Scope>(scope_);
    assign(*statement.target, item);
    if (truth(evaluate(*statement.expressions[1]))) kept.push_back(item);
  }
  return Value::list(std::move(kept)).sequence();
}

Interpreter::Flow Interpreter::loop(const Statement& statement, const Value& items, int64_t depth) {
  const SequenceRef chosen = selected(statement, iterate(items));
  const auto state = std::make_shared<Loop>(chosen, depth, statement.recursive ? &statement : nullptr, scope_);
  if (statement.recursive) keep(state);
  for (const Value& item : chosen->items) {
    const Inside inside(*this);
    scope_ = std::make_shared<Scope>(scope_);
    scope_->set(kLoop, Value::object(state));
    const Flow flow = iteration(statement, item);
    if (flow == Flow::stop) break;
    state->advance();
  }
  if (chosen->items.empty()) {
    const Inside inside(*this);
    scope_ = std::make_shared<Scope>(scope_);
    execute(statement.otherwise);
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::iteration(const Statement& statement, const Value& item) {
  if (const int32_t message = message_of(item); message >= 0) tag_.turn = message;
  site_ = &statement.target->place;
  assign(*statement.target, item);
  return execute(statement.bodies[0]);
}

TextRef Interpreter::render_loop(const Statement& statement, const ScopeRef& scope, const Value& items, int64_t depth) {
  TextBuilder out;
  const Inside inside(*this, &out);
  scope_ = scope;
  loop(statement, items, depth);
  return out.take();
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (target.type == Expression::Type::name) {
    // A loop over indexes that picks a message has that message's turn.
    if (rendering_.messages != nullptr && tag_.turn < 0 && scope_->find(kLoop) != nullptr) tag_.turn = message_of(value);
    scope_->set(target.symbol, value);
    return;
  }
  site_ = &target.place;
  if (target.type == Expression::Type::namespace_attribute) {
    const Value* found = scope_->find(target.symbol);
    auto* space = found != nullptr && found->is(Kind::object) ? dynamic_cast<Namespace*>(found->object().get()) : nullptr;
    if (space == nullptr) throw Error("an attribute is set on what is no namespace");
    space->set(target.name, value);
    return;
  }
  const SequenceRef items = iterate(value);
  if (items->items.size() != target.parts.size()) {
    throw Error(fmt::format("{} values are unpacked into {} names", items->items.size(), target.parts.size()));
  }
  for (size_t i = 0; i < target.parts.size(); ++i) assign(*target.parts[i], items->items[i]);
}

TextRef Interpreter::captured(const Body& body, const ScopeRef& parent) {
  TextBuilder out;
  const Inside inside(*this, &out);
  scope_ = std::make_shared<Scope>(parent);
  execute(body);
  return out.take();
}

void Interpreter::assign_block(const Statement& statement) {
  Value value = Value::text(captured(statement.bodies[0], scope_));
  if (statement.expressions[0]) value = filter(*statement.expressions[0], &value);
  assign(*statement.target, value);
}

void Interpreter::filter_block(const Statement& statement) {
  const Value text = Value::text(captured(statement.bodies[0], scope_));
  write(filter(*statement.expressions[0], &text));
}

void Interpreter::with(const Statement& statement) {
  std::vector<Value> given = values(statement.expressions);
  const Inside inside(*this);
  scope_ = std::make_shared<Scope>(scope_);
  for (size_t i = 0; i < given.size(); ++i) assign(*statement.targets[i], given[i]);
  execute(statement.bodies[0]);
}

void Interpreter::generation(const Statement& statement) {
  const Inside inside(*this);
  tag_.generation = generations_++;
  scope_ = std::make_shared<Scope>(scope_);
  execute(statement.bodies[0]);
}

void Interpreter::define_macro(const Statement& statement) {
  auto macro = std::make_shared<Macro>(*statement.macro, scope_);
  keep(macro);
  scope_->set(statement.symbol, Value::object(macro));
}

void Interpreter::call_block(const Statement& statement) {
  auto body = std::make_shared<Macro>(*statement.macro, scope_);
  keep(body);
  const Value caller = Value::object(body);
  write(call(*statement.expressions[0], &caller));
}

Value Interpreter::call_macro(const MacroSyntax& macro, const ScopeRef& closure, CallArguments& arguments) {
  TextBuilder out;
  const Inside inside(*this, &out);
  spend(1);
  scope_ = std::make_shared<Scope>(closure);
  bind_parameters(macro, arguments);
  execute(macro.body);
  return Value::text(out.take());
}

// As Macro.__call__ of jinja2/runtime.py: by position, by name, then defaults in order.
void Interpreter::bind_parameters(const MacroSyntax& macro, CallArguments& arguments) {
  auto& positional = arguments.positional;
  auto& named = arguments.named;
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    for (size_t i = 0; i < named.size(); ++i) {
      if (named[i].first != name) continue;
      std::optional<Value> value(std::move(named[i].second));
      named.erase(named.begin() + static_cast<std::ptrdiff_t>(i));
      return value;
    }
    return std::nullopt;
  };
  bool caller_found = false;
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    caller_found = caller_found || parameter.name == "caller";
    std::optional<Value> value = i < positional.size() ? std::optional(positional[i]) : take_named(parameter.name);
    if (!value && parameter.otherwise) value = evaluate(*parameter.otherwise);
    if (!value) value = Value::undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    scope_->set(parameter.symbol, *std::move(value));
  }
  if (macro.uses_caller && !caller_found) {
    scope_->set(kCaller, take_named("caller").value_or(Value::undefined("no caller is defined")));
  }
  if (macro.uses_kwargs) {
    Dict rest;
    for (auto& [name, value] : named) rest.set(name, std::move(value));
    scope_->set(kKwargs, Value::dict(std::move(rest)));
  } else if (!named.empty()) {
    throw Error(fmt::format("the macro '{}' takes no argument named {}", macro.name, quote(named[0].first)));
  }
  const size_t taken = std::min(positional.size(), macro.parameters.size());
  if (macro.uses_varargs) {
    scope_->set(kVarargs, Value::tuple({positional.begin() + static_cast<std::ptrdiff_t>(taken), positional.end()}));
  } else if (positional.size() > taken) {
    throw Error(fmt::format("the macro '{}' takes at most {} arguments", macro.name, taken));
  }
}

}  // namespace snug::chat
