// What names and parts of objects are worth: which of their bindings holds where.

#include <algorithm>
#include <iterator>

#include "recipe/dialects/python_files.h"

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

// The last binding before `at`, else the first after it: functions stand above what they use.
PythonValue PythonValues::of_name(const std::string& name, size_t at) {
  if (name == "__name__")
    return PythonValue{.kind = Kind::text, .text = files_ && files_->everybody().front() != this ? "a module" : "__main__"};
  const auto found = bindings_.find(name);
  const auto imported = [&]() { return of_import(name); };
  if (found == bindings_.end()) return imported();
  const Binding* const bound = binding_of(found->second, at);
  if (bound == nullptr || (bound->value <= at && at < pass_expression(bound->value))) return imported();
  PythonValue value = worth(*bound);
  if (const auto items = items_.find(name); items != items_.end() && value.kind == Kind::dict)
    for (const Binding& item : items->second) {
      if ((steps_ += 1 + static_cast<int64_t>(value.members.size())) > kMostSteps) return {};
      if (item.at < bound->at || item.at > at) continue;
      const std::optional<bool> is_run = runs(item.at, at);
      if (is_run == false) continue;
      size_t item_at = item.value;
      const std::string& key = tokens_[item.at].text;
      PythonValue now = is_run ? at_depth(&PythonValues::choice, item_at) : PythonValue();
      std::erase_if(value.members, [&](const PythonMember& member) { return member.name == key; });
      value.members.push_back({key, std::move(now)});
    }
  return value;
}

// A function sees what the module holds when it is called: where that is, first and outside of all; `at` where nobody calls
// it below by its name.
size_t PythonValues::called_from(size_t at) {
  const size_t def = def_around(at);
  if (statements_.empty() || def == statements_.size() || depth_ >= kDeepestExpression) return at;
  const auto [known, is_new] = first_calls_.try_emplace(def, 0);
  const auto calls = calls_.find(token(statements_[def].begin + 1).text);
  if (is_new && calls != calls_.end() && class_around(def).empty()) {
    const size_t end = end_of(def);
    ++depth_;
    for (const size_t open : calls->second) {
      if (++steps_ > kMostSteps) break;
      const size_t call = open - 1;
      if (call < end || tokens_[call - 1].is(".")) continue;
      const size_t from = called_from(call);
      if (def_around(from) != statements_.size()) continue;  // in a function that nobody calls
      known->second = from;
      break;
    }
    --depth_;
  }
  return std::max(at, known->second);
}

// The last before `at`, or the first of all; none where only Python knows which of several it is.
const PythonValues::Binding* PythonValues::binding_of(const std::vector<Binding>& all, size_t at) {
  const Binding* bound = nullptr;
  bool certain = true;
  const bool scoped = std::ranges::any_of(all, [&](const Binding& binding) { return is_in_scope(binding.at, at); });
  const auto same = [this](const Binding& a, const Binding& b) {
    const PythonValue one = worth(a), other = worth(b);
    return one.kind == other.kind && one.text == other.text && one.items.empty() && one.members.empty();
  };
  const bool local = std::ranges::any_of(all, [&](const Binding& binding) {
    const bool of_function = binding.until != 0 || def_around(binding.at) != statements_.size();
    return of_function && (binding.until == 0 || (at >= binding.from && at < binding.until)) && is_in_scope(binding.at, at);
  });
  const size_t until = local ? at : called_from(at);
  for (const Binding& binding : all) {
    if (bound != nullptr && binding.at >= until) break;
    if (binding.until != 0 && (at < binding.from || at >= binding.until)) continue;
    if (scoped && !is_in_scope(binding.at, at)) continue;  // of another function
    if (binding.to == Bound::parameter && asked_.contains(binding.parameter))
      continue;  // f(name=name): another of that name
    const bool of_itself = binding.to == Bound::value && binding.value <= at && at < pass_expression(binding.value);
    if (of_itself) continue;  // "a = a // 2": of what it was before
    const std::optional<bool> is_run = runs(binding.at, at);
    if (is_run == false) continue;
    certain = is_run.has_value() || bound == nullptr || (certain && same(*bound, binding));
    bound = &binding;
  }
  return certain ? bound : nullptr;
}

// Of an object that is not known: what a class of the script has by that name.
PythonValue PythonValues::of_field(const std::string& name, size_t at) {
  const auto found = bindings_.find(name);
  if (found == bindings_.end()) return {};
  std::vector<Binding> fields;
  std::ranges::copy_if(found->second, std::back_inserter(fields), [&](const Binding& binding) {
    return ++steps_ <= kMostSteps && !class_around(statement_of(binding.at)).empty();
  });
  const Binding* const field = binding_of(fields, at);
  return field ? worth(*field) : PythonValue();
}

// "Settings(rows=2)" of a class of the script or of a module beside it.
PythonValue PythonValues::object_made(const std::string& name, size_t open, size_t end) {
  const auto has = [&](const PythonValues* values) { return values->classes_.contains(name); };
  const bool known = has(this) || (files_ && std::ranges::any_of(files_->everybody(), has));
  if (!known) return {};
  PythonValue object = arguments(open, end).by_name;
  object.kind = Kind::object;
  object.text = name;
  return object;
}

// What a class gives its objects by that name: where it stands, where __init__ puts it, in the class that it is made of.
PythonValue PythonValues::of_class(const std::string& name, const std::string& field) {
  const auto found = classes_.find(name);
  if (found == classes_.end() || ++steps_ > kMostSteps || depth_ >= kDeepestExpression) return {};
  ++depth_;
  PythonValue value;
  if (const auto all = bindings_.find(field); all != bindings_.end())
    for (const Binding& binding : all->second)
      if (++steps_ <= kMostSteps && class_around(statement_of(binding.at)) == name) value = worth(binding);
  if (const auto all = parts_.find("self." + field); all != parts_.end() && !value.known())
    for (const Binding& binding : all->second)
      if (++steps_ <= kMostSteps && function_around(binding.at) == name && runs(binding.at, binding.at) != false)
        value = worth(binding);
  if (!value.known() && token(found->second + 2).is("(")) value = of_class(token(found->second + 3).text, field);
  --depth_;
  return value;
}

PythonValue PythonValues::part_of(const PythonValue& object, const std::string& name) {
  const auto member = std::ranges::find(object.members, name, &PythonMember::name);
  if (member != object.members.end()) return member->value;
  if (object.kind != Kind::object) return {};
  if (classes_.contains(object.text) || files_ == nullptr || !files_->enter()) return of_class(object.text, name);
  PythonValue value;
  for (PythonValues* const other : files_->everybody())
    if (other != this && !value.known()) value = other->of_class(object.text, name);
  files_->leave();
  value.literal = false;
  return value;
}

// "self.settings.rows": of what "self.settings" is.
PythonValue PythonValues::of_holder(const std::string& path, size_t at) {
  const size_t dot = path.rfind('.');
  if (++steps_ > kMostSteps || depth_ >= kDeepestExpression) return {};
  ++depth_;
  const std::string holder = path.substr(0, dot);
  const bool whole = holder.find('.') == std::string::npos;
  const PythonValue object = whole ? of_name(holder, at) : of_attribute(holder, at);
  --depth_;
  return part_of(object, path.substr(dot + 1));
}

// args.name, self.name, CFG.name: what the command gives, else an option's default, else what the name is bound to anywhere,
// else the default that another file's parser has.
PythonValue PythonValues::of_attribute(const std::string& path, size_t at) {
  const std::string name(last_of(path));
  if (path.starts_with("torch."))
    return path.find('.', 6) == std::string::npos ? PythonValue{.kind = Kind::text, .text = name} : PythonValue();
  if (const std::optional<PythonValue> later = put_later(path, at)) return *later;
  if (std::optional<PythonValue> given = flag(name)) return *given;
  const std::optional<PythonValue> option = option_default(name);
  const size_t dot = path.find('.');
  const bool is_left =
      option && option->kind == Kind::none && dot != std::string::npos;  // to "settings.name", if it has one
  if (option && !is_left) return *option;
  if (dot != std::string::npos)
    if (PythonValue value = of_module(path.substr(0, dot), path.substr(dot + 1)); value.known()) return value;
  if (dot != std::string::npos)
    if (PythonValue value = of_holder(path, at); value.known()) return value;
  if (is_left) return *option;
  PythonValue value = dot == std::string::npos ? PythonValue() : of_field(name, at);
  if (!value.known()) value = of_name(name, at);
  if (value.known() || dot == std::string::npos || files_ == nullptr || !files_->enter()) return value;
  for (PythonValues* const other : files_->everybody())
    if (const std::optional<PythonValue> theirs = other == this ? std::nullopt : other->option_default(name)) {
      value = *theirs;
      value.literal = false;
      break;
    }
  files_->leave();
  return value;
}

}  // namespace snug::dialects
