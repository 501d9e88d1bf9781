#pragma once
// A template as its parser leaves it: expressions and statements, plain data. It knows nothing of their meaning.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/value.h"

namespace snug::chat {

struct Place {
  uint32_t line = 1;
  uint32_t begin = 0, end = 0;  // bytes of the source
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

// How a call, a filter or a test is given its arguments; the filtered value or the function stand elsewhere.
struct Arguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr star, star_star;
};

enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  unequal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in
};

struct Expression {
  enum class Type : uint8_t {
    constant,     // value
    name,         // symbol
    attribute,    // parts[0].name
    item,         // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]], each of the three may be null
    list,         // parts
    tuple,        // parts
    dict,         // parts: key, value, key, value…
    call,         // parts[0](arguments)
    filter,       // parts[0]|name(arguments); parts[0] is null in a filter block
    test,         // parts[0] is name(arguments)
    negate,       // -parts[0]
    plus,         // +parts[0]
    binary,       // parts[0] operators[0] parts[1]
    concatenate,  // parts joined by ~
    compare,      // parts[0] operators[0] parts[1] operators[1] parts[2]…
    logical_and,
    logical_or,
    logical_not,
    condition,            // parts[1] if parts[0] else parts[2]; parts[2] may be null
    namespace_attribute,  // as a target of set: symbol.name
  };
  Type type = Type::constant;
  Place place;
  int depth = 1;  // of the tree below
  std::string name;
  int32_t symbol = -1;
  Value value;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;
  Arguments arguments;
};

struct Statement;
using Body = std::vector<Statement>;

struct Parameter {
  std::string name;
  int32_t symbol = -1;
  ExpressionPtr otherwise;  // null: there is no default
};

// A macro, or the body of a call block.
struct MacroSyntax {
  std::string name;
  std::vector<Parameter> parameters;
  Body body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  enum class Type : uint8_t {
    data,          // text
    output,        // expressions
    condition,     // if expressions[0] body, elif expressions[1] bodies[1]…, else otherwise
    loop,          // for target in expressions[0] if expressions[1]
    assign,        // set target = expressions[0]
    assign_block,  // set target, filtered by expressions[0] if not null
    macro,
    call_block,    // expressions[0] is the call
    filter_block,  // expressions[0] is the filter
    with,          // targets = expressions
    scope,         // a block
    generation,
    stop,      // break
    next_item  // continue
  };
  Type type = Type::data;
  Place place;
  TextRef text;
  int32_t symbol = -1;  // of a macro's name
  ExpressionPtr target;
  std::vector<ExpressionPtr> targets;
  std::vector<ExpressionPtr> expressions;
  std::vector<Body> bodies;
  Body otherwise;
  bool recursive = false;
  std::unique_ptr<MacroSyntax> macro;
};

// Variables that the language sets itself: the first of Syntax::symbols.
enum SpecialSymbol : int32_t { kLoop, kCaller, kVarargs, kKwargs };

struct Syntax {
  std::string source;  // normalized
  std::string where;
  Body body;
  std::vector<std::string> symbols;  // names of variables, by number
  bool has_generation = false;       // it says itself what the assistant generates
};

}  // namespace snug::chat
