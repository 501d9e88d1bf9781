#include "recipe/dialects/python_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/trimmed.h"
#include "recipe/dialects/beside.h"
#include "recipe/dialects/handed_on.h"
#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;

PythonValue value_of(const std::string& text) {
  if (text == "true" || text == "false") return {.kind = Kind::truth, .text = text};
  if (text == "???") return {};  // OmegaConf's: somebody has to say it
  PythonValue value{.kind = Kind::number, .text = text};
  if (!number_of(value)) value.kind = Kind::text;
  return value;
}

PythonValue value_of(const Entry& entry) {
  if (entry.kind == EntryKind::map) return {.kind = Kind::dict};
  if (entry.kind == EntryKind::scalar)
    return entry.values.empty() ? PythonValue{.kind = Kind::none} : value_of(entry.text());
  PythonValue list{.kind = Kind::list};
  for (const std::string& item : entry.values) list.items.push_back(value_of(item));
  return list;
}

// Where "model.name" belongs, which a mapping that came before has made.
PythonValue* place_of(PythonValue& root, std::string_view path) {
  PythonValue* at = &root;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    const auto member = std::ranges::find(at->members, name, &PythonMember::name);
    if (member == at->members.end()) return nullptr;
    at = &member->value;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return at;
}

PythonValue dict_of(const Document& document) {
  PythonValue root{.kind = Kind::dict};
  for (const Entry& entry : document.entries)
    if (PythonValue* const parent = place_of(root, entry.parent()); parent && parent->kind == Kind::dict)
      parent->members.push_back({std::string(entry.leaf()), value_of(entry)});
  return root;
}

void stands_elsewhere(PythonValue& value) {
  value.literal = false;
  for (PythonValue& item : value.items) stands_elsewhere(item);
  for (PythonMember& member : value.members) stands_elsewhere(member.value);
}

// "model: {name: …}", "base_model: …"
bool names_a_model(const PythonValue& settings, int depth = 0) {
  return std::ranges::any_of(settings.members, [&](const PythonMember& member) {
    const bool model = lower(member.name).find("model") != std::string::npos;
    const bool named = member.value.kind == Kind::text || (depth == 0 && !member.value.members.empty());
    return (model && named) || (depth == 0 && names_a_model(member.value, 1));
  });
}

bool ends_in(const std::filesystem::path& name, std::initializer_list<std::string_view> endings) {
  return std::ranges::find(endings, name.extension().string()) != endings.end();
}

}  // namespace

// "" where there is none: what cannot be read is not known.
std::string PythonFiles::text_of(const std::filesystem::path& name, int64_t most_bytes) {
  if (read_ >= kMostFiles) return {};
  // As Python finds modules: a name alone beside the script, one of a package from where the script is started, too.
  const bool module = ends_in(name, {".py"});
  const Look look = !module ? Look::by_last_name : name.has_parent_path() ? Look::above : Look::near;
  std::optional<std::string> text = read_beside(script_, name, most_bytes, look);
  if (!text && module) text = read_beside(script_, "src" / name, most_bytes, Look::above);
  if (text) ++read_;
  return text.value_or("");
}

namespace {

// "export NAME='value'  # what it is for", one a line.
std::map<std::string, PythonValue> variables_in(std::string_view text) {
  std::map<std::string, PythonValue> variables;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = trimmed(line);
    if (line.starts_with("export ")) line = trimmed(line.substr(7));
    const size_t sign = line.find('=');
    if (sign == std::string_view::npos || line.starts_with('#')) continue;
    std::string_view value = trimmed(line.substr(sign + 1));
    const char quote = value.empty() ? ' ' : value.front();
    if ((quote == '"' || quote == '\'') && value.find(quote, 1) != std::string_view::npos)
      value = value.substr(1, value.find(quote, 1) - 1);
    else
      value = value.starts_with('#') ? std::string_view() : trimmed(value.substr(0, value.find(" #")));
    if (!value.empty())
      variables[std::string(trimmed(line.substr(0, sign)))] = {.kind = Kind::text, .text = std::string(value)};
  }
  return variables;
}

}  // namespace

PythonValue PythonFiles::environment(const std::string& name) {
  if (!environment_) {
    environment_.emplace();
    for (const char* file : {".env", ".env.example", ".env.sample", ".env.template"}) {
      const std::optional<std::string> text = read_beside(script_, file, kMostSettingsBytes, Look::above);
      if (!text) continue;
      environment_ = variables_in(*text);
      environment_name_ = file;
      break;
    }
  }
  const auto found = environment_->find(name);
  if (found == environment_->end()) return {};
  note_use(environment_name_);
  return found->second;
}

PythonValue PythonFiles::loaded(const std::string& name) {
  if (!ends_in(name, {".json", ".yaml", ".yml"})) return {};
  PythonValue values = peeked(name);
  if (values.known()) note_use(name);
  return values;
}

PythonValue PythonFiles::peeked(const std::string& name) {
  const auto [found, is_new] = settings_.try_emplace(name);
  Settings& settings = found->second;
  if (is_new) {
    const std::string text = text_of(name, kMostSettingsBytes);
    settings.steps += static_cast<int64_t>(text.size()) / 512;
    try {
      if (!text.empty()) settings.values = dict_of(name.ends_with(".json") ? read_json(text, name) : read_yaml(text, name));
    } catch (const Error&) {
      settings.values = {};
    }
  }
  return may_ask(settings.steps) ? settings.values : PythonValue();
}

PythonFiles* PythonFiles::take_groups(const std::vector<PythonToken>& tokens) {
  namespace fs = std::filesystem;
  const std::string root = flags_ == nullptr ? std::string() : hydras_settings(tokens);
  if (root.empty()) return this;
  for (const auto& [name, given] : flags_->options()) {
    if (given.kind != Kind::text || given.text.size() > 200) continue;
    const fs::path file = fs::path(root).parent_path() / name / (given.text + ".yaml");
    if (find_beside(script_, file, Look::above)) groups_[name] = given.text;
  }
  for (const auto& [name, file] : groups_) flags_->take_away(name);
  return this;
}

PythonValue PythonFiles::composed(const std::string& name) {
  const auto [found, is_new] = settings_.try_emplace("hydra " + name);
  Settings& settings = found->second;
  if (is_new)
    if (const std::optional<Document> document = put_together(name)) {
      settings.steps += static_cast<int64_t>(document->text.size()) / 512;
      settings.values = dict_of(*document);
      for (const std::string& file : document->beside) note_use(file);
    }
  if (settings.values.known()) note_use(name);
  return may_ask(settings.steps) ? settings.values : PythonValue();
}

std::optional<Document> PythonFiles::put_together(const std::string& name) {
  const std::optional<std::filesystem::path> path = find_beside(script_, name, Look::by_last_name);
  if (!path) return std::nullopt;
  try {
    Document settings = read_yaml(text_of(name, kMostSettingsBytes), path->string());
    choose_groups(settings);
    for (std::string& file : settings.beside)
      file = (std::filesystem::path(name).parent_path() / file).lexically_normal().string();
    return settings;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void PythonFiles::choose_groups(Document& settings) {
  std::map<std::string, std::string> left = groups_;
  std::set<std::string> chosen;
  for (const auto& [group, file] : groups_) chosen.insert(group);
  for (Entry& entry : settings.entries)
    if (entry.kind == EntryKind::scalar && entry.path.starts_with("defaults."))
      if (const auto group = left.find(group_named(entry.leaf())); group != left.end()) {
        entry.values = {group->second};
        left.erase(group);
      }
  for (const auto& [group, file] : left) {  // "+experiment=small"
    settings.entries.push_back({.path = "defaults.command." + group, .kind = EntryKind::scalar});
    settings.entries.back().values = {file};
  }
  read_inherited(settings, chosen);
  for (Entry& entry : settings.entries) {
    const PythonValue* const given = flags_ && entry.kind == EntryKind::scalar ? flags_->option(entry.path) : nullptr;
    if (given && (given->kind == Kind::text || given->kind == Kind::number || given->kind == Kind::truth))
      entry.values = {given->text};
  }
}

namespace {

// Files that hold settings of something else.
bool is_of_others(const std::string& file) {
  for (const char* part : {"deepspeed", "ds_", "zero", "accelerate", "fsdp", "package", "tokenizer", "requirements",
                           "docker", "environment", "special_tokens", "vocab", "data", "eval", "infer", "merge"})
    if (file.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

bool PythonFiles::holds_settings(const std::string& name) {
  if (name.size() > 200 || !ends_in(name, {".json", ".yaml", ".yml"})) return false;
  return !is_of_others(lower(std::filesystem::path(name).filename().string())) && names_a_model(peeked(name));
}

PythonValue PythonFiles::only_settings() {
  namespace fs = std::filesystem;
  if (looked_for_settings_) return settings_found_.empty() ? PythonValue() : loaded(settings_found_);
  looked_for_settings_ = true;
  const fs::path folder = fs::path(script_).parent_path();
  std::vector<std::string> found;
  for (const fs::path& above : {folder, folder / ".."})
    for (const char* name : {"", "config", "configs", "conf", "cfg", "settings"}) {
      if (above != folder && *name == '\0') continue;
      std::error_code error;
      int files = 0;
      for (fs::directory_iterator entry(above.empty() && *name == '\0' ? fs::path(".") : above / name, error), end;
           !error && entry != end && files < kMostFilesOfAFolder; entry.increment(error), ++files) {
        if (!ends_in(entry->path(), {".json", ".yaml", ".yml"}) || is_of_others(lower(entry->path().filename().string())))
          continue;
        const fs::path file = entry->path().lexically_relative(folder.empty() ? fs::path(".") : folder);
        const PythonValue values = peeked(file.string());
        if (names_a_model(values)) found.push_back(file.string());
      }
    }
  if (found.size() != 1) return {};
  settings_found_ = found.front();
  notes_.push_back("which file of settings is meant the script does not say: the only one beside it is taken, " +
                   settings_found_);
  return loaded(settings_found_);
}

std::string hydras_settings(const std::vector<PythonToken>& tokens) {
  std::string path, name;
  for (size_t at = 0; at + 2 < tokens.size(); ++at) {
    if (!tokens[at + 1].is("=") || tokens[at + 2].kind != PythonKind::string) continue;
    if (tokens[at].is_word("config_path")) path = tokens[at + 2].text;
    if (tokens[at].is_word("config_name")) name = tokens[at + 2].text;
  }
  if (name.empty()) return {};
  return (path.empty() ? "" : path + "/") + name + (name.ends_with(".yaml") ? "" : ".yaml");
}

bool PythonFiles::takes_as_given(const std::string& name) {
  if (flags_ != nullptr) return false;
  std::string note = fmt::format("--{} is taken as given: without it the script trains nothing", name);
  if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
  return true;
}

PythonModule* PythonFiles::imported(const std::string& module) {
  const auto [found, is_new] = modules_.try_emplace(module);
  std::unique_ptr<PythonModule>& place = found->second;  // null as long as it is read: one that imports itself finds nothing
  if (!is_new) return place.get();
  std::string name = module;
  std::ranges::replace(name, '.', '/');
  name += ".py";
  const std::string text = text_of(name, kMostModuleBytes);
  if (text.empty()) return nullptr;
  try {
    place = std::make_unique<PythonModule>(name, python_tokens(text, name), this);
  } catch (const Error&) {
    return nullptr;
  }
  return place.get();
}

void PythonFiles::note_use(const std::string& name) {
  if (std::ranges::find(used_, name) == used_.end()) used_.push_back(name);
}

// ---- In a script

// "from a.b import c, d", "import a.b": a/b.py, or a/b/c.py and a/b/d.py.
void PythonValues::gather_modules(size_t begin, size_t end) {
  std::string from, name;
  bool imports = tokens_[begin - 1].is_word("import");
  const auto take = [&](const std::string& module, const std::string& as) {
    PythonModule* const there = module.empty() ? nullptr : files_->imported(module);
    if (there) origins_[as] = there;
    if (there && std::ranges::find(modules_, there) == modules_.end()) {
      modules_.push_back(there);
      there->values.importers_.push_back(this);
    }
    return there;
  };
  PythonModule* source = nullptr;
  for (size_t at = begin; at <= end; ++at) {
    const PythonToken& here = token(at);
    if (at < end && !imports && here.is_word("import")) {
      from = std::exchange(name, "");
      source = take(from, from);
      imports = true;
    } else if (at < end && here.kind == PythonKind::name && !here.is_word("as")) {
      name += (name.empty() ? "" : ".") + here.text;
    } else if (at == end || here.is(",") || here.is_word("as")) {
      const std::string one = std::exchange(name, "");
      const bool renames = at < end && here.is_word("as");
      const std::string as = renames ? token(at + 1).text : one;
      if (imports && !one.empty() && take(from.empty() ? one : from + "." + one, as) == nullptr && source != nullptr)
        origins_[as] = source;
      if (!renames) continue;
      renamed_[as] = token(at - 1).text;
      ++at;
    }
  }
}

size_t PythonFiles::which_calls() const {
  size_t number = 1;
  for (const Call& call : calls_)
    number = (number * 1'000'003U) ^ std::hash<const PythonValues*>{}(call.caller) ^ (call.open << 1U);
  return number;
}

// Of a name that stands in no file but another's: that of the module which it was brought from, else of the first that knows
// it.
PythonValue PythonValues::of_import(const std::string& name) {
  const auto other = renamed_.find(name);  // "from conf import BASE as MODEL"
  const std::string& theirs = other == renamed_.end() ? name : other->second;
  if (const auto origin = origins_.find(name); origin != origins_.end() && files_->may_ask() && files_->enter()) {
    PythonValue value = origin->second->values.bound(theirs);
    files_->leave();
    if (value.known()) {
      files_->note_use(origin->second->name);
      stands_elsewhere(value);
      return value;
    }
  }
  return of_modules([&](PythonValues& values) { return values.bound(theirs); });
}

// Of a module's own name.
PythonValue PythonValues::of_module(const std::string& module, const std::string& name) {
  const auto origin = origins_.find(module);
  if (origin == origins_.end() || name.find('.') != std::string::npos || !files_->may_ask() || !files_->enter()) return {};
  PythonValue value = origin->second->values.bound(name);
  files_->leave();
  stands_elsewhere(value);
  if (value.known()) files_->note_use(origin->second->name);
  return value;
}

// The first of the imported modules that knows. What stands in another file cannot be changed here.
PythonValue PythonValues::of_modules(const std::function<PythonValue(PythonValues&)>& ask) {
  for (PythonModule* const module : modules_) {
    if (!files_->may_ask() || !files_->enter()) return {};
    PythonValue value = ask(module->values);
    files_->leave();
    if (!value.known()) continue;
    files_->note_use(module->name);
    stands_elsewhere(value);
    return value;
  }
  return {};
}

// The file that an expression names, opened or not: "f" of "with open(path) as f", "open(path)", "path.read_text()".
PythonValue PythonValues::file_named(size_t at) {
  if (const auto handles = handles_.find(token(at).text); handles != handles_.end()) {
    const Binding* opened = nullptr;  // the last before it, of the same function if there is one
    for (const Binding& handle : handles->second)
      if (handle.at < at && (opened == nullptr || is_in_scope(handle.at, at) || !is_in_scope(opened->at, at)))
        opened = &handle;
    if (opened != nullptr) at = opened->value;
  }
  if (token(at).is_word("open") && token(at + 1).is("(")) at += 2;
  const bool outer = std::exchange(names_file_, true);
  PythonValue name = at_depth(&PythonValues::choice, at);
  names_file_ = outer;
  return name;
}

// json.load(f), yaml.safe_load(open("…")), OmegaConf.load("…")
PythonValue PythonValues::of_file(size_t open) {
  if (files_ == nullptr) return {};
  const PythonValue name = file_named(open + 1);
  if (name.kind == PythonValue::Kind::text) return files_->loaded(name.text);
  bool of_settings = false;                                                    // not data
  for (size_t part = open + 1, end = behind_[open]; part + 1 < end; ++part) {  // os.path.join(here, "run.yaml")
    if (token(part).kind == PythonKind::string)
      if (PythonValue value = files_->loaded(token(part).text); value.known()) return value;
    const std::string word = lower(token(part).text);
    for (const char* says : {"conf", "cfg", "setting", "param"})
      of_settings = of_settings || word.find(says) != std::string::npos;
  }
  const bool yaml = open > 2 && token(open - 3).is_word("yaml");
  return yaml || of_settings ? files_->only_settings() : PythonValue();
}

}  // namespace snug::dialects
