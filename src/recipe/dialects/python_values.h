#pragma once
// What expressions of a Python script are worth where that can be told from its text: literals, names that were bound to
// them, arithmetic, defaults of arguments and of the environment. Nothing is run; what only Python knows is unknown.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "recipe/dialects/python_tokens.h"

namespace snug::dialects {

struct PythonMember;

struct PythonValue {
  enum class Kind : uint8_t { unknown, none, truth, number, text, list, dict, object };
  Kind kind = Kind::unknown;
  std::string text;                   // "true", "2048", "1e-4", what a string says; of an object its class; of unknown: ""
  std::vector<PythonValue> items;     // of a list or tuple
  std::vector<PythonMember> members;  // of a dict whose keys are strings; of an object what it was made with, by name
  Span span;                          // of a literal
  bool literal = false;               // it stands at `span` in one token
  std::string flag;                   // the option of the command that starts the script that it is; "" for others
  bool of_several = false;            // it is, or is of, the first of several that a loop goes over

  bool known() const { return kind != Kind::unknown; }
};

struct PythonMember {
  std::string name;
  PythonValue value;
};

// As a number, as `if` takes it; none where that is not known.
std::optional<double> number_of(const PythonValue& value);
std::optional<bool> truth_of(const PythonValue& value);
// "left + right" and the like; unknown where only Python knows.
PythonValue computed(const PythonValue& left, const std::string& sign, const PythonValue& right);

class PythonFiles;
class PythonFlags;
struct PythonModule;

class PythonValues {
 public:
  // Gathers what names are bound to. `tokens` and `files`, which lie beside the script, must outlive this.
  explicit PythonValues(const std::vector<PythonToken>& tokens, PythonFiles* files = nullptr);

  // The value of the expression that begins at token `at`, which is moved behind it. Whatever stands there is passed, up to
  // a comma, a closing bracket or the end of the statement.
  PythonValue value(size_t& at);

  // Of "a if … else b" at `at` where the one that holds begins; of others `at`.
  size_t chosen(size_t at);

  // What a name is bound to anywhere, an option's default before others.
  PythonValue bound(const std::string& name) { return of_attribute(name, tokens_.size()); }

  // Whether the statement of token `at` is run, by the conditions that it stands under; none: only Python knows. Where
  // that of `use` is run, which may stand under some of them too.
  std::optional<bool> runs(size_t at) { return runs(at, tokens_.size()); }
  std::optional<bool> runs(size_t at, size_t use);

  // The function that a token stands in, or of a method its class; "" for none.
  std::string function_around(size_t at) const;

  // Those that are imported and lie beside the script.
  const std::vector<PythonModule*>& modules() const { return modules_; }

  // Moves `at`, which stands at an opening bracket, behind the closing one.
  void pass_brackets(size_t& at) const;

 private:
  static constexpr int kDeepestExpression = 40;
  static constexpr size_t kMostValues = 20'000;  // in a list or a dict, all in all
  static constexpr size_t kMostReturned = 256;
  static constexpr int64_t kMostSteps = 500'000;  // in all: names may be made of others, each of them of more

  enum class Bound : uint8_t { value, parameter, item, key, member };  // to what: of a loop the first of what it goes over

  struct Binding {
    size_t at = 0;     // of the name
    size_t value = 0;  // where its expression begins; of a parameter its default's, or 0
    Bound to = Bound::value;
    size_t parameter = 0;              // its number in parameters_
    size_t from = 0, until = 0;        // where alone it is seen; everywhere: 0
    std::string sign = {};             // of "a //= 2" "//": of what it was before
    std::optional<size_t> place = {};  // of "a, b = f()": which of what that returns
  };

  // Of a function of the script, or of its class where it makes one.
  struct Parameter {
    std::string function, name;
    size_t position = 0, body = 0, end = 0;  // among those that a call gives; where the function begins and ends
    bool of_object = false;                  // called as object.function(…)
  };

  struct Statement {
    size_t begin = 0, parent = 0;  // the statement that it stands in; its own number: none
    enum class Holds : uint8_t { unasked, asked, yes, no, unknown } holds = Holds::unasked;  // of an `if` and its like
    Holds holds_for_call = Holds::unasked;  // where that hangs on what one call gives
    size_t call = 0;                        // which one
  };

  void gather();
  void gather_blocks();
  size_t statement_of(size_t at) const;
  std::optional<bool> holds(size_t statement);
  std::optional<bool> condition(size_t statement);
  void gather_statement(size_t begin, size_t end);
  void gather_part(size_t begin);
  size_t behind_annotation(size_t colon, size_t end) const;
  size_t behind_head(size_t begin, size_t end) const;
  void gather_parameters(size_t def);
  void gather_imports(size_t begin, size_t end);
  void gather_modules(size_t begin, size_t end);
  void gather_loop(size_t begin, size_t end);
  void gather_handles(size_t begin, size_t end);
  std::string class_around(size_t statement) const;
  size_t end_of(size_t statement) const;
  PythonValue worth(const Binding& binding);
  PythonValue given(const Binding& binding);
  PythonValue given_anywhere(const Binding& binding);
  PythonValue given_by_this_call(const Parameter& of, const std::function<PythonValue()>& left_out);
  std::optional<PythonValue> given_by_calls(const Parameter& of, const std::function<PythonValue()>& left_out);
  PythonValue usual(const Binding& binding);
  std::optional<PythonValue> flag(const std::string& name);
  std::optional<PythonValue> option_default(const std::string& name);
  PythonValue variable(const std::string& name);
  std::optional<PythonValue> word(size_t place);
  bool calls(size_t open, const Parameter& parameter) const;
  bool is_hydras(size_t def) const;
  std::optional<size_t> argument(size_t open, const Parameter& parameter) const;
  void gather_option(size_t open);
  void gather_defaults(size_t open);
  bool is_of_another_command(size_t open);
  const PythonToken& token(size_t at) const;
  size_t pass_expression(size_t at) const;
  PythonValue at_depth(PythonValue (PythonValues::*read)(size_t&), size_t& at);

  PythonValue choice(size_t& at);
  PythonValue disjunction(size_t& at);
  PythonValue inversion(size_t& at);
  PythonValue comparison(size_t& at);
  PythonValue sum(size_t& at);
  PythonValue product(size_t& at);
  PythonValue unary(size_t& at);
  PythonValue primary(size_t& at);
  PythonValue chain(size_t& at);
  struct Arguments {
    PythonValue by_name;  // a dict
    std::vector<PythonValue> by_place;
  };
  PythonValue call(const std::string& path, size_t& at);
  PythonValue handed_through(size_t open, size_t end);
  PythonValue joined(size_t open, size_t end);
  PythonValue hanging_on(PythonValue value, size_t& at);
  PythonValue method(const PythonValue& of, const std::string& name, size_t open);
  PythonValue member(const std::string& dict, size_t open);
  Arguments arguments(size_t open, size_t end);
  PythonValue strings(size_t& at);
  PythonValue items(size_t& at, std::string_view close);
  PythonValue members(size_t& at);
  PythonValue kept(size_t open);
  PythonValue filled(const PythonToken& string);
  PythonValue filled_in(const std::string& pattern, size_t open);
  PythonValue returned(const std::string& path);
  PythonValue returned_to(size_t open, const std::string& path);
  PythonValue returned_by(std::string_view function);
  PythonValue of_file(size_t open);
  PythonValue file_named(size_t at);
  PythonValue of_modules(const std::function<PythonValue(PythonValues&)>& ask);
  PythonValue of_name(const std::string& name, size_t at);
  PythonValue of_import(const std::string& name);
  PythonValue of_field(const std::string& name, size_t at);
  PythonValue of_module(const std::string& module, const std::string& name);
  PythonValue of_holder(const std::string& path, size_t at);
  PythonValue part_of(const PythonValue& object, const std::string& name);
  PythonValue of_class(const std::string& name, const std::string& field);
  PythonValue object_made(const std::string& name, size_t open, size_t end);
  std::optional<PythonValue> put_later(const std::string& path, size_t at);
  bool is_in_scope(size_t binding, size_t use) const;
  size_t def_around(size_t at) const;
  bool returns_before(size_t statement);
  size_t return_in(size_t begin) const;
  std::optional<bool> is_called(size_t def);
  size_t called_from(size_t at);
  const Binding* binding_of(const std::vector<Binding>& all, size_t at);
  PythonValue of_attribute(const std::string& path, size_t at);
  // Of a name, with or without parts.
  PythonValue of_dotted(const std::string& path, size_t at) {
    return path.find('.') == std::string::npos ? of_name(path, at) : of_attribute(path, at);
  }

  const std::vector<PythonToken>& tokens_;
  PythonFiles* files_;
  std::vector<PythonModule*> modules_;            // that are imported and lie beside the script
  std::vector<PythonValues*> importers_;          // of the files that import this one
  std::map<std::string, std::string> renamed_;    // by "import … as"
  std::map<std::string, PythonModule*> origins_;  // of a name that "from … import" brings, and of a module's own name
  std::map<std::string, std::vector<Binding>> handles_;  // "with open(…) as f"
  std::map<std::string, std::vector<Binding>> bindings_;
  std::map<std::string, std::vector<Binding>> items_;  // name["key"] = …: `at` is the key's
  std::map<std::string, std::vector<Binding>> parts_;  // "name.part = …": `at` is the name's
  std::map<std::string, size_t> options_;              // argparse: where the default begins
  std::map<std::string, bool> switches_;               // argparse: store_true, store_false: what they are if not given
  std::set<std::string> bools_;                        // argparse: type=bool
  std::vector<std::string> commands_;                  // argparse: "train" of add_parser("train")
  std::string command_option_;                         // argparse: what holds the command, add_subparsers(dest=…)
  std::map<std::string, std::vector<std::string>> spellings_;  // argparse: what an option may be called
  std::map<std::string, size_t> places_;                       // argparse: of an argument without dashes, which it is
  std::map<size_t, size_t> first_calls_;                       // of a def's statement: token where it is called; 0: nowhere
  std::vector<Parameter> parameters_;
  std::set<size_t> asked_;                                         // parameters whose value is just being looked for
  std::map<std::string, std::vector<size_t>, std::less<>> calls_;  // of a name: the opening brackets
  std::set<std::string> imported_;
  std::vector<Statement> statements_;
  std::map<std::string, size_t, std::less<>> classes_;                // where their heads begin
  std::map<std::string, std::vector<size_t>, std::less<>> returns_;   // of a function: where what it returns begins
  std::map<std::pair<size_t, size_t>, PythonValue> returned_before_;  // by the call and those around it
  std::vector<size_t> behind_;  // of an opening bracket: the token behind its closing one
  int depth_ = 0;               // of expressions
  int64_t steps_ = 0;
  bool names_file_ = false;  // what is asked for is a file's name: "path.read_text()" is path
};

}  // namespace snug::dialects
