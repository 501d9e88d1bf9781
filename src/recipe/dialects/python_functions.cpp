// What calls of known functions are worth: Python's own, those that read the environment, a file or a default, and those of
// the script that return a dict.

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

#include "recipe/dialects/python_files.h"

namespace snug::dialects {

namespace {

using ValueKind = PythonValue::Kind;

PythonValue as_text(std::string text) { return {.kind = ValueKind::text, .text = std::move(text)}; }

// What a function stands for, whoever wrote it.
enum class Known : uint8_t { nothing, environment, as_it_is, downloads, field, dict, member };

Known known_function(const std::string& path, std::string_view name) {
  // Of the script's own too: env_str("MODEL", "…")
  if (name == "getenv" || path.ends_with("environ.get") || name.starts_with("env_") || name == "env" ||
      name.starts_with("get_env") || name.starts_with("_env"))
    return Known::environment;
  if (name == "get" && path.size() > 4) return Known::member;
  if (name == "int" || name == "float" || name == "str" || name == "bool" || name == "Path") return Known::as_it_is;
  if (name == "snapshot_download") return Known::downloads;  // of huggingface_hub and modelscope: a folder of what it names
  if (name == "field" || name == "Field" || name == "Argument" || name == "Option") return Known::field;
  return name == "dict" ? Known::dict : Known::nothing;
}

const PythonValue* held_by(const PythonValue& dict, std::string_view name) {
  const auto member = std::ranges::find(dict.members, name, &PythonMember::name);
  return member == dict.members.end() ? nullptr : &member->value;
}

// dict(a, key=…): a copy, with changes.
PythonValue changed(PythonValue copy, const PythonValue& changes) {
  for (const PythonMember& change : changes.members) {
    std::erase_if(copy.members, [&](const PythonMember& member) { return member.name == change.name; });
    copy.members.push_back(change);
  }
  return copy;
}

// What a script asks its user, and its card, an A100: what asks for the capability asks whether there is bf16.
PythonValue asked_outside(std::string_view name) {
  if (name == "is_bfloat16_supported" || name == "is_bf16_supported" || name == "is_available")
    return {.kind = ValueKind::truth, .text = "true"};
  const auto digit = [](const char* text) { return PythonValue{.kind = ValueKind::number, .text = text}; };
  if (name == "input" || name == "getpass") return as_text("");  // nobody answers
  if (name == "get_device_capability") return {.kind = ValueKind::list, .text = {}, .items = {digit("8"), digit("0")}};
  return {};
}

}  // namespace

// The few calls whose value can be told. What a card can is taken to be there.
PythonValue PythonValues::call(const std::string& path, size_t& at) {
  const size_t open = at;
  pass_brackets(at);
  const std::string_view name = std::string_view(path).substr(path.rfind('.') + 1);
  if (PythonValue value = asked_outside(name); value.known()) return value;
  if (name == "len" && token(open + 1).is_word("sys") && token(open + 3).is_word("argv"))
    return files_ && files_->flags() ? PythonValue() : PythonValue{.kind = ValueKind::number, .text = "1"};
  if (PythonValue object = object_made(path, open, at); object.known()) return object;
  if (name == "read_text" || name == "open" || name == "read" || name == "read_bytes")
    return names_file_ && name.size() < path.size() ? of_dotted(path.substr(0, path.size() - name.size() - 1), open)
                                                    : PythonValue();
  if (path == "os.path.join" || path == "osp.join" || path == "join") return joined(open, at);
  if (PythonValue value = returned_to(open, path); value.known()) return value;
  if (path == "getattr" && token(open + 1).is_word("torch") && token(open + 2).is(",")) {  // a dtype
    size_t of = open + 3;
    return choice(of);
  }
  if (name == "load" || name == "loads" || name == "safe_load" || name == "full_load") return of_file(open);
  const Known known = known_function(path, name);
  if (known == Known::nothing && path.size() > name.size())
    if (const PythonValue of = of_dotted(path.substr(0, path.size() - name.size() - 1), open); of.known())
      if (PythonValue value = method(of, std::string(name), open); value.known()) return value;
  if (known == Known::nothing) return handed_through(open, at);
  if (known == Known::member) return member(path.substr(0, path.size() - 4), open);
  const Arguments given = arguments(open, at);
  if (known == Known::dict) {
    if (given.by_place.empty()) return given.by_name;
    const bool copies = given.by_place.size() == 1 && given.by_place[0].kind == ValueKind::dict;
    return copies ? changed(given.by_place[0], given.by_name) : PythonValue();
  }
  if (known == Known::downloads)
    for (const char* of : {"repo_id", "model_id"})
      if (const PythonValue* model = held_by(given.by_name, of)) return *model;
  if (known == Known::environment && !given.by_place.empty())
    if (PythonValue set = variable(given.by_place[0].text); set.known()) return set;
  if (const PythonValue* usual = held_by(given.by_name, "default")) return *usual;
  if (known == Known::environment)
    return given.by_place.size() > 1 ? given.by_place[1] : PythonValue{.kind = ValueKind::none};
  return given.by_place.empty() ? PythonValue() : given.by_place[0];
}

// Of what makes an object of one dict, "Settings.model_validate(d)", "cls(**d)", "SimpleNamespace(**d)": the dict.
PythonValue PythonValues::handed_through(size_t open, size_t end) {
  const bool spread = token(open + 1).is("**");
  size_t inside = open + (spread ? 2 : 1);
  const size_t behind = pass_expression(inside);
  if (behind + 1 != end || (token(inside).kind != PythonKind::name && !token(inside).is("{"))) return {};
  PythonValue value = at_depth(&PythonValues::choice, inside);
  return value.kind == ValueKind::dict || value.kind == ValueKind::object ? value : PythonValue();
}

// os.path.join(here, "a", "b"): without what only Python knows before it.
PythonValue PythonValues::joined(size_t open, size_t end) {
  std::string path;
  for (const PythonValue& part : arguments(open, end).by_place) {
    if (part.kind != ValueKind::text) {
      if (!path.empty()) return {};
      continue;
    }
    path += (path.empty() ? "" : "/") + part.text;
  }
  return path.empty() ? PythonValue() : as_text(std::move(path));
}

PythonValue PythonValues::method(const PythonValue& of, const std::string& name, size_t open) {
  constexpr std::array<std::string_view, 11> kLeave = {"resolve", "absolute", "expanduser", "as_posix",   "strip",  "rstrip",
                                                       "copy",    "to_dict",  "dict",       "model_dump", "as_dict"};
  if (std::ranges::find(kLeave, name) != kLeave.end()) return of;
  if (of.kind == ValueKind::text && name == "format") return filled_in(of.text, open);
  if (of.kind == ValueKind::text && (name == "lower" || name == "upper")) {
    std::string text = of.text;
    for (char& c : text)
      c = static_cast<char>(name == "lower" ? std::tolower(static_cast<unsigned char>(c))
                                            : std::toupper(static_cast<unsigned char>(c)));
    return as_text(std::move(text));
  }
  if (name == "items" && of.kind == ValueKind::dict) return of;
  if (names_file_ && (name == "read_text" || name == "open" || name == "read")) return of;
  if (name != "get" || of.kind != ValueKind::dict) return {};
  const Arguments given = arguments(open, behind_[open]);
  if (given.by_place.empty() || given.by_place[0].kind != ValueKind::text) return {};
  if (const PythonValue* value = held_by(of, given.by_place[0].text)) return *value;
  return given.by_place.size() > 1 ? given.by_place[1] : PythonValue{.kind = ValueKind::none};
}

// "{k: v for k, v in settings.items() if k not in (…)}": what a dict has, but for some.
PythonValue PythonValues::kept(size_t open) {
  const std::string key = token(open + 1).text, value = token(open + 3).text;
  const bool pairs = token(open + 4).is_word("for") && token(open + 5).is_word(key) && token(open + 6).is(",") &&
                     token(open + 7).is_word(value) && token(open + 8).is_word("in");
  size_t at = open + 9;
  PythonValue dict = pairs ? sum(at) : PythonValue();
  if (dict.kind != ValueKind::dict) return {};
  if (token(at).is("}")) return dict;
  if (!token(at).is_word("if")) return {};
  const bool of_keys = token(at + 1).is_word(key);
  const bool negated = token(at + 2).is_word("not") || token(at + 3).is_word("not");
  if (!of_keys && !(token(at + 1).is_word(value) && token(at + 2).is_word("is") && negated)) return {};
  const bool within = token(at + 2).is_word("in") || (negated && token(at + 3).is_word("in"));
  if (of_keys && !within) return {};
  at += negated ? 4 : 3;
  const PythonValue other = sum(at);
  if (of_keys && !negated && token(at).is("}") && other.items.empty()) return dict;  // "if k in supported"
  if (!token(at).is("}") || other.kind != (of_keys ? ValueKind::list : ValueKind::none)) return {};
  std::erase_if(dict.members, [&](const PythonMember& member) {
    if (!of_keys) return member.value.kind == ValueKind::none;
    return (std::ranges::find(other.items, member.name, &PythonValue::text) != other.items.end()) == negated;
  });
  return dict;
}

// settings.get("name", default)
PythonValue PythonValues::member(const std::string& dict, size_t open) { return method(of_dotted(dict, open), "get", open); }

PythonValues::Arguments PythonValues::arguments(size_t open, size_t end) {
  Arguments given{{.kind = ValueKind::dict}, {}};
  for (size_t inside = open + 1; inside + 1 < end;) {
    const size_t next = pass_expression(inside);
    if (token(inside).is("**")) {
      PythonValue spread = choice(++inside);
      steps_ += static_cast<int64_t>(spread.members.size());
      if (steps_ > kMostSteps) return given;
      std::ranges::move(spread.members, std::back_inserter(given.by_name.members));
    } else if (token(inside).kind == PythonKind::name && token(inside + 1).is("=")) {
      const std::string key = token(inside).text;
      inside += 2;
      given.by_name.members.push_back({key, choice(inside)});
    } else {
      given.by_place.push_back(choice(inside));
    }
    inside = next + 1;
  }
  return given;
}

// "llama-{}-hf".format(…): what stands in place, one after the other.
PythonValue PythonValues::filled_in(const std::string& pattern, size_t open) {
  std::string text;
  size_t inside = open + 1;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{') {
      text += pattern[at];
      continue;
    }
    if (pattern.compare(at, 2, "{}") != 0) return {};
    const PythonValue value = choice(inside);
    if (!value.known()) return {};
    text += value.text;
    if (token(inside).is(",")) ++inside;
    ++at;
  }
  return as_text(std::move(text));
}

}  // namespace snug::dialects
