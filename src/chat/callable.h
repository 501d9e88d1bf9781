#pragma once
// What a template can call, and how arguments find their parameters.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace snug::chat {

class Interpreter;

constexpr size_t kMostNamed = 1000;  // arguments with names, and parameters of a macro

struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments in the order of a function's parameters.
class Bound {
 public:
  explicit Bound(std::vector<std::optional<Value>> values) : values_(std::move(values)) {}

  bool has(size_t i) const { return values_[i].has_value(); }
  // True if the argument is there and not none.
  bool given(size_t i) const { return has(i) && !values_[i]->is(Kind::none); }
  const Value& at(size_t i) const& { return *values_[i]; }
  const Value& at(size_t i) && = delete;
  Value value(size_t i, const Value& otherwise) const { return has(i) ? *values_[i] : otherwise; }
  bool flag(size_t i, bool otherwise) const { return has(i) ? truth(*values_[i]) : otherwise; }
  // Throw Error for another type.
  int64_t integer(size_t i, int64_t otherwise) const;
  const TextRef& text(size_t i) const&;
  const TextRef& text(size_t i) && = delete;

 private:
  std::vector<std::optional<Value>> values_;
};

// `parameters`: "old new ?count": those with "?" may be missing; "/" in front: not by name. Throws Error that names
// `function`.
Bound match_arguments(const CallArguments& arguments, std::string_view function, std::string_view parameters);

class Callable : public Object {
 public:
  virtual Value call(Interpreter& interpreter, CallArguments& arguments) = 0;
};

// A function of the language or a method of a value.
class Function final : public Callable {
 public:
  using Body = std::function<Value(Interpreter&, CallArguments&)>;
  explicit Function(Body body, std::string_view type = "builtin_function_or_method") : body_(std::move(body)), type_(type) {}
  std::string_view type_name() const override { return type_; }
  Value call(Interpreter& interpreter, CallArguments& arguments) override { return body_(interpreter, arguments); }

 private:
  Body body_;
  std::string_view type_;
};

inline Value make_function(Function::Body body) { return Value::object(std::make_shared<Function>(std::move(body))); }

}  // namespace snug::chat
