#pragma once
// A macro or the body of a call block, with the scope in which it was defined.

#include "chat/interpreter.h"

namespace snug::chat {

class Macro final : public Callable, public Holder {
 public:
  Macro(const MacroSyntax& syntax, ScopeRef closure) : syntax_(syntax), closure_(std::move(closure)) {}

  std::string_view type_name() const override { return "Macro"; }
  std::optional<std::string> printed() const override { return "<Macro '" + syntax_.name + "'>"; }
  std::optional<Value> attribute(std::string_view name) override {
    if (name == "name") return Value::text(syntax_.name);
    if (name == "caller") return Value::boolean(syntax_.uses_caller);
    if (name == "catch_kwargs") return Value::boolean(syntax_.uses_kwargs);
    if (name == "catch_varargs") return Value::boolean(syntax_.uses_varargs);
    if (name != "arguments") return std::nullopt;
    std::vector<Value> names;
    for (const Parameter& parameter : syntax_.parameters) names.push_back(Value::text(parameter.name));
    return Value::tuple(std::move(names));
  }
  Value call(Interpreter& interpreter, CallArguments& arguments) override {
    return interpreter.call_macro(syntax_, closure_, arguments);
  }
  void let_go() override { closure_.reset(); }

 private:
  const MacroSyntax& syntax_;
  ScopeRef closure_;
  Charge charge_{128};
};

}  // namespace snug::chat
