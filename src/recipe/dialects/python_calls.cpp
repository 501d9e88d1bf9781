// What parameters of a script's functions are given by its calls, and what its loops begin with.

#include <algorithm>

#include "recipe/dialects/python_files.h"

namespace snug::dialects {

using Kind = PythonValue::Kind;

namespace {

bool alike(const PythonValue& a, const PythonValue& b) {
  return a.known() && a.kind == b.kind && a.text == b.text && a.items.empty() && b.items.empty() && a.members.empty() &&
         b.members.empty();
}

}  // namespace

// The class whose statement this one stands in; "" without one.
std::string PythonValues::class_around(size_t statement) const {
  const size_t parent = statements_[statement].parent;
  const size_t head = statements_[parent].begin;
  return parent != statement && token(head).is_word("class") ? token(head + 1).text : std::string();
}

// Behind the last token of what stands in a statement.
size_t PythonValues::end_of(size_t statement) const {
  const int64_t indent = tokens_[statements_[statement].begin].indent;
  for (size_t next = statement + 1; next < statements_.size(); ++next)
    if (tokens_[statements_[next].begin].indent <= indent) return statements_[next].begin;
  return tokens_.size();
}

// `def`: its token.
void PythonValues::gather_parameters(size_t def) {
  const size_t open = def + 2, statement = statement_of(def), body_end = end_of(statement);
  const std::string in_class = class_around(statement);
  const bool makes_object = token(def + 1).text == "__init__" && !in_class.empty();
  const std::string function = makes_object ? in_class : token(def + 1).text;
  size_t end = open, position = 0;
  pass_brackets(end);
  for (size_t at = open + 1; at + 1 < end;) {
    const size_t name = at, next = pass_expression(at);
    while (at < next && !tokens_[at].is("=")) {
      if (opens(tokens_[at])) {
        pass_brackets(at);
      } else {
        ++at;
      }
    }
    const bool own = position == 0 && !in_class.empty() && (token(name).is_word("self") || token(name).is_word("cls"));
    if (tokens_[name].kind == PythonKind::name && !own) {
      Binding binding{.at = name, .value = at < next ? at + 1 : 0, .to = Bound::parameter, .parameter = parameters_.size()};
      if (binding.value == 0) binding.from = def, binding.until = body_end;  // with a default it stands for self.name, too
      bindings_[tokens_[name].text].push_back(binding);
      parameters_.push_back({function, tokens_[name].text, position++, def, body_end, !in_class.empty() && !makes_object});
    }
    at = next + 1;
  }
}

// "import a.b as c, d", "from a import b as c".
void PythonValues::gather_imports(size_t begin, size_t end) {
  if (!token(begin).is_word("import") && !token(begin).is_word("from")) return;
  if (files_ != nullptr) gather_modules(begin + 1, end);
  for (size_t at = begin + 1; at < end; ++at)
    if (tokens_[at].kind == PythonKind::name && !token(at - 1).is(".")) imported_.insert(tokens_[at].text);
}

// "for a in …:", "for i, a in enumerate(…):", "for key, a in ….items():".
void PythonValues::gather_loop(size_t begin, size_t end) {
  if (begin + 4 >= end || !tokens_[begin].is_word("for") || token(begin + 1).kind != PythonKind::name) return;
  const bool two = token(begin + 2).is(",") && token(begin + 3).kind == PythonKind::name;
  const size_t in = begin + (two ? 4 : 2);
  if (!token(in).is_word("in")) return;
  size_t over = in + 1;
  const bool counted = token(over).is_word("enumerate") && token(over + 1).is("(");
  if (counted) over += 2;
  size_t behind = over;
  while (behind < end && !tokens_[behind].is(":") && !tokens_[behind].is("(") && !tokens_[behind].is("[")) ++behind;
  const bool members = behind > over + 1 && token(behind).is("(") && token(behind - 1).is_word("items");
  if (two != (counted || members)) return;
  const auto bind = [&](size_t name, Bound to) {  // behind the loop it is the last, not the first
    bindings_[token(name).text].push_back(
        {.at = name, .value = over, .to = to, .from = begin, .until = end_of(statement_of(begin))});
  };
  if (members) bind(begin + 1, Bound::key);
  bind(two ? begin + 3 : begin + 1, members ? Bound::member : Bound::item);
}

// "with open(path) as f, …:"
void PythonValues::gather_handles(size_t begin, size_t end) {
  if (!token(begin).is_word("with")) return;
  for (size_t at = begin + 1; at < end; ++at) {
    const size_t from = at;
    while (at < end && !tokens_[at].is(",") && !tokens_[at].is(":") && !tokens_[at].is_word("as")) {
      if (opens(tokens_[at])) {
        pass_brackets(at);
      } else {
        ++at;
      }
    }
    if (!token(at).is_word("as")) continue;
    handles_[token(at + 1).text].push_back({.at = at + 1, .value = from});
    ++at;
  }
}

PythonValue PythonValues::worth(const Binding& binding) {
  if (binding.to == Bound::parameter) return given(binding);
  size_t at = binding.value;
  if (!binding.sign.empty()) {
    if (++steps_ > kMostSteps || depth_ >= kDeepestExpression) return {};
    ++depth_;
    const PythonValue before = of_name(token(binding.at).text, binding.at);
    PythonValue after = computed(before, binding.sign, choice(at));
    --depth_;
    return after;
  }
  if (binding.to == Bound::value) {
    PythonValue value = at_depth(&PythonValues::choice, at);
    if (!binding.place) return value;
    return value.kind == Kind::list && *binding.place < value.items.size() ? value.items[*binding.place] : PythonValue();
  }
  // "NAME.items()" is asked for as the dict that NAME is.
  const bool of_items = binding.to == Bound::key || binding.to == Bound::member;
  PythonValue over = of_items ? of_attribute(token(at).text, at) : at_depth(&PythonValues::choice, at);
  const bool several = over.items.size() + over.members.size() > 1;
  const auto first_of = [&](PythonValue value) {
    value.of_several = several;
    for (PythonMember& member : value.members) member.value.of_several = several;
    return value;
  };
  if (over.kind == Kind::list && !of_items && !over.items.empty()) return first_of(over.items.front());
  if (over.kind != Kind::dict || over.members.empty()) return {};
  const PythonMember& member = over.members.front();
  return first_of(binding.to == Bound::member ? member.value : PythonValue{.kind = Kind::text, .text = member.name});
}

// Whether what is called there is the parameter's function, not one of a library or of another object with its name.
bool PythonValues::calls(size_t open, const Parameter& parameter) const {
  if (parameter.body <= open && open < parameter.end) return false;  // itself
  size_t root = open - 1;
  while (root > 1 && token(root - 1).is(".") && token(root - 2).kind == PythonKind::name) root -= 2;
  const bool of_object = root != open - 1 || (root > 0 && token(root - 1).is("."));
  const std::string& owner = token(root).text;
  const bool of_library = of_object && imported_.contains(owner) && !origins_.contains(owner);
  return of_object == parameter.of_object && !of_library;
}

// Where a call gives a parameter its value; none: it leaves it to the default; the end of all tokens: it cannot be told.
std::optional<size_t> PythonValues::argument(size_t open, const Parameter& parameter) const {
  size_t end = open, position = 0;
  pass_brackets(end);
  for (size_t at = open + 1; at + 1 < end;) {
    const size_t next = pass_expression(at);
    if (token(at).is("*") || token(at).is("**")) return tokens_.size();
    if (token(at).kind == PythonKind::name && token(at + 1).is("=")) {
      if (token(at).text == parameter.name) return at + 2;
    } else if (position++ == parameter.position) {
      return at;
    }
    at = next + 1;
  }
  return std::nullopt;
}

// Whether "@hydra.main(…)" stands above.
bool PythonValues::is_hydras(size_t def) const {
  for (size_t statement = statement_of(def); statement-- > 0;) {
    const size_t at = statements_[statement].begin;
    if (!token(at).is("@")) return false;
    if (token(at + 1).is_word("hydra") && token(at + 3).is_word("main")) return true;
  }
  return false;
}

// What calls leave out: a command's option of that name, as Fire and its like have it, else the default; what Hydra gives.
PythonValue PythonValues::usual(const Binding& binding) {
  const std::string& name = parameters_[binding.parameter].name;
  if (std::optional<PythonValue> option = flag(name)) return *option;
  size_t at = binding.value;
  if (at == 0)
    if (const auto option = options_.find(name); option != options_.end()) at = option->second;
  const Parameter& parameter = parameters_[binding.parameter];
  if (at == 0 && parameter.position == 0 && files_ != nullptr && is_hydras(parameter.body))
    if (const std::string file = hydras_settings(tokens_); !file.empty()) return files_->composed(file);
  return at == 0 ? PythonValue() : at_depth(&PythonValues::choice, at);
}

// What all calls of this file that are run give, where that is known and the same; none where nothing calls it here.
std::optional<PythonValue> PythonValues::given_by_calls(const Parameter& of, const std::function<PythonValue()>& left_out) {
  const auto opens = calls_.find(of.function);
  if (opens == calls_.end()) return std::nullopt;
  std::optional<PythonValue> all;
  bool called = false;  // "model.train()" does not call train()
  for (const size_t open : opens->second) {
    if (++steps_ > kMostSteps) return PythonValue();
    if (!calls(open, of)) continue;
    called = true;
    if (runs(open) == false) continue;
    std::optional<size_t> at = argument(open, of);
    PythonValue value = !at ? left_out() : *at < tokens_.size() ? at_depth(&PythonValues::choice, *at) : PythonValue();
    if (!value.known() || (all && !alike(*all, value))) return left_out();
    all = std::move(value);
  }
  if (!called) return std::nullopt;
  return all ? *all : left_out();
}

// What the call whose function is being read gives; unknown where another function's is.
PythonValue PythonValues::given_by_this_call(const Parameter& of, const std::function<PythonValue()>& left_out) {
  if (files_ == nullptr || files_->calls().empty() || files_->calls().back().function != of.function) return {};
  files_->note_asked_of_call();
  const PythonFiles::Call call = files_->calls().back();
  files_->calls().pop_back();  // what it gives is of what stands around it
  PythonValues& caller = *call.caller;
  std::optional<size_t> at = caller.argument(call.open, of);
  PythonValue value;
  if (!at) value = left_out();
  if (at && *at < caller.tokens_.size()) value = caller.at_depth(&PythonValues::choice, *at);
  files_->calls().push_back(call);
  return value;
}

// By the file's own calls, else by those of the files that import it.
PythonValue PythonValues::given(const Binding& binding) {
  if (!asked_.insert(binding.parameter).second) return {};
  PythonValue value = given_anywhere(binding);
  asked_.erase(binding.parameter);
  return value;
}

PythonValue PythonValues::given_anywhere(const Binding& binding) {
  Parameter of = parameters_[binding.parameter];
  const std::function<PythonValue()> left_out = [&]() { return usual(binding); };
  if (PythonValue value = given_by_this_call(of, left_out); value.known()) return value;
  if (std::optional<PythonValue> value = given_by_calls(of, left_out)) return *value;
  of.body = of.end = 0;  // of another file
  for (PythonValues* const importer : importers_) {
    if (!files_->may_ask() || !files_->enter()) break;
    std::optional<PythonValue> value = importer->given_by_calls(of, left_out);
    files_->leave();
    if (value) return *value;
  }
  return left_out();
}

}  // namespace snug::dialects
