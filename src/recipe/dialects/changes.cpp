#include "recipe/dialects/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "recipe/dialects/reading.h"
#include "recipe/keys.h"

namespace snug {

namespace {

using namespace dialects;  // NOLINT(google-build-using-namespace): one subject, two places

struct Edit {
  size_t begin = 0, end = 0;  // bytes of the old text
  std::string text;
  bool added = false;  // a key of its own, after what stands there
};

// What the dialect calls a key of ours: the name the file uses, else the first of the table.
const Entry* entry_of(const Document& document, const ForeignRecipe& read, const Rules& rules, std::string_view ours) {
  for (auto key = read.keys.rbegin(); key != read.keys.rend(); ++key)
    if (key->ours == ours) return document.find(key->name);
  for (const Row& row : rules.rows)  // given, but null or with its default
    if (row.ours == ours)
      if (const Entry* entry = document.find(row.theirs)) return entry;
  return nullptr;
}

class Writer {
 public:
  Writer(const Document& document, const Wanted& wanted, const Rules& rules)
      : document_(document), wanted_(wanted), read_(wanted.read), rules_(rules) {}

  // False if there is no way to write it.
  bool change(const RecipeChange& change) {
    std::vector<TheirSetting> theirs;
    if (!(rules_.write && rules_.write(document_, wanted_, change, theirs))) {
      if (const Entry* entry = entry_of(document_, read_, rules_, change.key)) {
        theirs.push_back({entry->path, change.value});
      } else if (const auto row = std::find_if(rules_.rows.begin(), rules_.rows.end(),
                                               [&](const Row& r) { return r.ours == change.key; });
                 row != rules_.rows.end()) {
        theirs.push_back({new_path(*row), change.value});
      }
    }
    const std::vector<Edit> before = edits_;
    const bool done =
        !theirs.empty() && std::all_of(theirs.begin(), theirs.end(), [&](const TheirSetting& t) { return put(t); });
    if (!done) edits_ = before;
    return done;
  }

  std::string text() {
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return std::pair(a.begin, a.added) < std::pair(b.begin, b.added); });
    std::string made;
    size_t at = 0;
    for (const Edit& edit : edits_) {
      if (edit.begin < at) continue;  // two changes of one place: the first holds
      made += document_.text.substr(at, edit.begin - at) + edit.text;
      at = edit.end;
    }
    return made + document_.text.substr(at);
  }

 private:
  // A file with blocks of its own keeps a new key beside its kin.
  std::string new_path(const Row& row) const {
    if (!rules_.by_leaf) return std::string(row.theirs);
    const Entry* kin = beside("");
    const std::string_view parent = kin ? kin->parent() : std::string_view();
    return parent.empty() ? std::string(row.theirs) : fmt::format("{}.{}", parent, row.theirs);
  }

  bool put(const TheirSetting& setting) {
    const Entry* entry = document_.find(setting.path);
    if (setting.remove) return !entry || remove(*entry);
    if (!entry) return insert(setting);
    if (!entry->in_place) return is_handed_on(*entry) && insert(setting);
    if (entry->text() == setting.value && !entry->values.empty()) return true;
    edits_.push_back({entry->value.begin, entry->value.end, spelt(*entry, setting.value)});
    return true;
  }

  // It stands in the file of keys that a trainer's own command is given, a word of which holds over it, or below an anchor
  // or in a file that this one goes on from, where a key of the file's own does.
  bool is_handed_on(const Entry& entry) const {
    if (entry.line != 0) return false;
    if (document_.syntax == Syntax::yaml) return true;
    return document_.syntax == Syntax::shell && document_.command[0] != "python" && document_.started.empty();
  }

  std::string_view old(const Span& span) const {
    return std::string_view(document_.text).substr(span.begin, span.end - span.begin);
  }

  // The value as its neighbours are written: quoted where it was, True where Python wrote the file.
  std::string spelt(const Entry& entry, const std::string& value) const {
    const std::string_view was = old(entry.value);
    if (document_.syntax == Syntax::json) return json_value(value);
    if (document_.syntax == Syntax::python) return python_value(value, was.empty() ? '"' : was.front());
    const bool capital = was == "True" || was == "False";
    std::string word = capital && (value == "true" || value == "false") ? (value == "true" ? "True" : "False") : value;
    if (was.size() >= 2 && (was.front() == '"' || was.front() == '\'') && was.back() == was.front())
      return was.front() + word + was.front();
    const char before = entry.value.begin > 0 ? document_.text[entry.value.begin - 1] : '\0';
    if (document_.syntax == Syntax::shell) return (was.empty() && before != '=' ? " " : "") + word + apart(entry.value.end);
    if (!was.empty()) return word;
    return before == ':' ? " " + word : word;
  }

  // "4>log" would be a redirection of file 4.
  std::string apart(size_t at) const {
    const char next = at < document_.text.size() ? document_.text[at] : '\0';
    return next == '<' || next == '>' ? " " : "";
  }

  static std::string json_value(const std::string& value) {
    const bool bare = value == "true" || value == "false" || value == "null" ||
                      (!value.empty() && value.find_first_not_of("0123456789.-+eE") == std::string::npos);
    return bare ? value : '"' + value + '"';
  }

  static std::string python_value(const std::string& value, char quote) {
    if (value == "true" || value == "false") return value == "true" ? "True" : "False";
    if (json_value(value) == value) return value;
    if (quote != '\'') quote = '"';
    return quote + value + quote;
  }

  // Whether the entry was read as a key of ours: blocks of a user's own may speak of something else than training.
  bool trains(const Entry& entry) const {
    return std::any_of(read_.keys.begin(), read_.keys.end(), [&](const ForeignKey& key) {
      return key.line == entry.line && !key.ours.empty() && key.name == entry.path;
    });
  }

  // The entry after which a new one of `parent` goes: a plain one that stands on one line.
  const Entry* beside(std::string_view parent) const {
    const auto suits = [&](const Entry& entry) {
      const bool flag = !entry.path.starts_with("launch.") && !entry.path.starts_with("env.") && entry.path != "words";
      return entry.in_place && entry.kind == EntryKind::scalar && entry.line > 0 && flag &&
             (rules_.by_leaf ? trains(entry) : entry.parent() == parent);
    };
    for (const std::string_view name : rules_.beside)
      for (auto entry = document_.entries.rbegin(); entry != document_.entries.rend(); ++entry)
        if (suits(*entry) && (rules_.by_leaf ? entry->leaf() == name : entry->path == name)) return &*entry;
    for (auto entry = document_.entries.rbegin(); entry != document_.entries.rend(); ++entry)
      if (suits(*entry) && (rules_.by_leaf || entry->parent() == parent)) return &*entry;
    return nullptr;
  }

  bool insert(const TheirSetting& setting) {
    const size_t dot = setting.path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : setting.path.substr(0, dot);
    const std::string name = setting.path.substr(dot == std::string::npos ? 0 : dot + 1);
    const Entry* kin = beside(parent);
    if (!kin || (rules_.by_leaf && kin->parent() != parent)) return false;
    const std::string& text = document_.text;
    const size_t line = text.rfind('\n', kin->name.begin == 0 ? std::string::npos : kin->name.begin - 1);
    const size_t begin = kin->name.begin == 0 || line == std::string::npos ? 0 : line + 1;
    const std::string indent = text.substr(begin, kin->name.begin - begin);
    const bool alone = indent.find_first_not_of(" \t") == std::string::npos;
    if (document_.syntax == Syntax::shell) return insert_flag(setting, *kin, indent, alone);
    if (document_.syntax == Syntax::python) return insert_argument(setting, *kin, indent, alone);
    if (document_.syntax == Syntax::json) {
      const std::string key = fmt::format("\"{}\": {}", name, json_value(setting.value));
      edits_.push_back({kin->value.end, kin->value.end, (alone ? ",\n" + indent : ", ") + key, true});
    } else if (kin->in_flow) {
      edits_.push_back({kin->value.end, kin->value.end, fmt::format(", {}: {}", name, setting.value), true});
    } else {
      if (!alone) return false;
      const bool python = old(kin->value) == "True" || text.find(": True") != std::string::npos;
      std::string value = setting.value;
      if (python && (value == "true" || value == "false")) value[0] = value == "true" ? 'T' : 'F';
      const size_t end = text.find('\n', kin->value.end);
      const size_t at = end == std::string::npos ? text.size() : end + 1;
      const std::string key = fmt::format("{}{}: {}", indent, name, value);
      edits_.push_back({at, at, end == std::string::npos ? "\n" + key : key + "\n", true});
    }
    return true;
  }

  // Beside an argument of the settings; what other calls take has no place there.
  bool insert_argument(const TheirSetting& setting, const Entry& kin, const std::string& indent, bool alone) {
    constexpr std::string_view kOfSettings[] = {"per_device_train_batch_size",
                                                "gradient_accumulation_steps",
                                                "gradient_checkpointing",
                                                "optim",
                                                "bf16",
                                                "fp16",
                                                "max_steps",
                                                "num_train_epochs",
                                                "learning_rate"};
    constexpr std::string_view kKin[] = {"gradient_accumulation_steps", "per_device_train_batch_size", "learning_rate"};
    const auto has = [](const auto& list, std::string_view name) { return std::ranges::find(list, name) != std::end(list); };
    const std::string_view name = std::string_view(document_.text).substr(kin.name.begin, kin.name.end - kin.name.begin);
    if (!has(kOfSettings, setting.path) || !has(kKin, kin.path) || name != kin.path) return false;
    const size_t next = document_.text.find_first_not_of(" \t", kin.name.end);
    if (next == std::string::npos || document_.text[next] != '=' || kin.value.begin < next) return false;  // bound elsewhere
    const std::string text = fmt::format("{} = {}", setting.path, python_value(setting.value, '"'));
    edits_.push_back({kin.value.end, kin.value.end, (alone ? ",\n" + indent : ", ") + text, true});
    return true;
  }

  bool insert_flag(const TheirSetting& setting, const Entry& kin, const std::string& indent, bool alone) {
    if (document_.own_options) return false;
    const bool pair = document_.command[0] == "tune" || !old(kin.name).starts_with("--");
    if (setting.path.find('.') != std::string::npos && !pair) return false;
    const char between = old(kin.name).ends_with('=') ? '=' : ' ';
    const std::string flag = pair ? fmt::format("{}={}", setting.path, setting.value)
                                  : fmt::format("--{}{}{}", setting.path, between, setting.value);
    const size_t end = std::max(kin.value.end, kin.name.end);
    if (document_.text[end - 1] == '\\') return false;  // it would take the space
    edits_.push_back({end, end, (alone ? " \\\n" + indent + flag : " " + flag) + apart(end), true});
    return true;
  }

  bool remove(const Entry& entry) {
    const std::string& text = document_.text;
    if (!entry.in_place || document_.syntax == Syntax::python) return false;
    size_t begin = text.rfind('\n', entry.name.begin);
    begin = begin == std::string::npos ? 0 : begin + 1;
    const bool first = text.substr(begin, entry.name.begin - begin).find_first_not_of(" \t") == std::string::npos;
    const size_t end = std::min(text.find('\n', entry.value.end), text.size() - 1) + 1;
    const std::string_view rest = std::string_view(text).substr(entry.value.end, end - entry.value.end);
    const bool goes_on =
        rest.find('\\') != std::string_view::npos && rest.find_first_not_of(" \t\\\r\n") == std::string_view::npos;
    const bool whole_line =
        document_.syntax == Syntax::yaml ? first && !entry.in_flow : document_.syntax == Syntax::shell && first && goes_on;
    if (whole_line) {
      edits_.push_back({begin, end, ""});
    } else if (document_.syntax == Syntax::shell) {
      const size_t space = entry.name.begin > 0 && text[entry.name.begin - 1] == ' ' ? 1 : 0;
      edits_.push_back({entry.name.begin - space, std::max(entry.value.end, entry.name.end), ""});
    } else {
      edits_.push_back({entry.value.begin, entry.value.end, "null"});
    }
    return true;
  }

  const Document& document_;
  const Wanted& wanted_;
  const ForeignRecipe& read_;
  const Rules& rules_;
  std::vector<Edit> edits_;
};

// Keys that one key of theirs may move together with another.
constexpr std::string_view kTogether[] = {"method",
                                          "per_device_train_batch_size",
                                          "gradient_accumulation_steps",
                                          "max_length",
                                          "packing",
                                          "gradient_checkpointing",
                                          "optim",
                                          "load_in_4bit",
                                          "load_in_8bit",
                                          "lora_r",
                                          "bf16",
                                          "fp16"};

std::string value_in(const Recipe& recipe, std::string_view name) {
  const Key* key = find_key(name);
  return key && key->get ? key->get(recipe) : std::string();
}

bool names(const std::vector<RecipeChange>& changes, std::string_view key) {
  return std::any_of(changes.begin(), changes.end(), [&](const RecipeChange& change) { return change.key == key; });
}

// Writes changes until the text says all of them and nothing else: what a change moved along is written too, and what reads
// back otherwise is taken back and told.
class Rewriting {
 public:
  Rewriting(const Document& document, const ForeignRecipe& read, const Rules& rules, std::span<const RecipeChange> changes)
      : document_(document), rules_(rules), wanted_{read, read.recipe} {
    for (const RecipeChange& change : changes) {
      const std::string before = value_in(wanted_.recipe, change.key);
      apply(wanted_.recipe, change.key, change.value);
      if (value_in(wanted_.recipe, change.key) != before) todo_.push_back(change);
    }
  }

  RecipePatch run() {
    constexpr int kMostRounds = 4;
    for (int round = 0; round < kMostRounds; ++round) {
      const std::string text = written();
      if (todo_.empty() || settle(text)) return {.text = text, .diff = {}, .unsaid = unsaid_};
    }
    for (const RecipeChange& change : todo_) unsaid_.push_back(change);
    return {.text = document_.text, .diff = {}, .unsaid = unsaid_};
  }

 private:
  std::string written() {
    Writer writer(document_, wanted_, rules_);
    std::erase_if(todo_, [&](const RecipeChange& change) {
      if (writer.change(change)) return false;
      give_up(change);
      return true;
    });
    return writer.text();
  }

  void give_up(const RecipeChange& change) {
    unsaid_.push_back(change);
    if (const std::string was = value_in(wanted_.read.recipe, change.key); !was.empty())
      apply(wanted_.recipe, change.key, was);
  }

  // True if the text says what is wanted; else what to do next is changed.
  bool settle(const std::string& text) {
    const auto back = read_foreign_recipe(text, document_.where);
    std::vector<RecipeChange> astray;
    for (const std::string_view key : kTogether) {
      const std::string value = value_in(wanted_.recipe, key);
      if (!back || value_in(back->recipe, key) != value) astray.push_back({std::string(key), value});
    }
    bool done = true;
    for (const RecipeChange& change : astray) {
      if (names(unsaid_, change.key)) continue;
      done = false;
      if (!names(todo_, change.key)) {
        todo_.push_back(change);
      } else {
        give_up(change);
        std::erase_if(todo_, [&](const RecipeChange& other) { return other.key == change.key; });
      }
    }
    return done;
  }

  const Document& document_;
  const Rules& rules_;
  Wanted wanted_;
  std::vector<RecipeChange> todo_, unsaid_;
};

}  // namespace

RecipePatch change_foreign_recipe(std::string_view text, const std::string& where, std::span<const RecipeChange> changes) {
  const Document document = read_document(text, where);
  const auto dialect = recognise(document);
  const auto found = dialect ? read_foreign(document, *dialect) : read_in_own_words(document);
  if (!found) throw Error("this is not another trainer's recipe", where);
  const ForeignRecipe& read = *found;
  // A notebook's code stands in JSON, and what it printed would be out of date; keys of a script's own have names of its
  // own.
  if (!dialect || where.ends_with(".ipynb")) {
    RecipePatch patch{.text = std::string(text), .diff = {}, .unsaid = {changes.begin(), changes.end()}};
    std::erase_if(patch.unsaid,
                  [&](const RecipeChange& change) { return value_in(read.recipe, change.key) == change.value; });
    return patch;
  }
  RecipePatch patch = Rewriting(document, read, rules_of(*dialect), changes).run();
  const std::string_view mark = text.starts_with("\xEF\xBB\xBF") ? text.substr(0, 3) : std::string_view();
  patch.text = std::string(mark) + patch.text;
  patch.diff = unified_diff(text, patch.text, where);
  return patch;
}

}  // namespace snug
