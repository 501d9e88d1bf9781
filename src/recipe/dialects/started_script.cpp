#include "recipe/dialects/started_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "recipe/dialects/beside.h"
#include "recipe/dialects/handed_on.h"
#include "recipe/dialects/own_words.h"
#include "recipe/dialects/python_files.h"
#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;

// "[q_proj, v_proj]", as Fire takes it.
PythonValue list_of(std::string text) {
  std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == ' ' || c == '"' || c == '\''; });
  PythonValue list{.kind = Kind::list};
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) list.items.push_back({.kind = Kind::text, .text = text.substr(at, end - at)});
    at = end + 1;
  }
  return list;
}

PythonValue value_of_flag(const std::string& text) {
  if (text.starts_with('[') && text.ends_with(']')) return list_of(text);
  if (text == "true" || text == "True" || text == "false" || text == "False")
    return {.kind = Kind::truth, .text = text[0] == 't' || text[0] == 'T' ? "true" : "false"};
  if (text == "None" || text == "null") return {.kind = Kind::none};
  PythonValue value{.kind = Kind::number, .text = text};
  if (!number_of(value)) value.kind = Kind::text;
  return value;
}

using Words = std::set<std::string_view>;

PythonValue value_of_flag(const Entry& entry, const Words& unread) {
  for (const std::string& text : entry.values)
    if (unread.contains(text)) return {};
  if (entry.kind == EntryKind::scalar)
    return entry.values.empty() ? PythonValue{.kind = Kind::none} : value_of_flag(entry.text());
  PythonValue list{.kind = Kind::list};
  for (const std::string& text : entry.values) list.items.push_back(value_of_flag(text));
  return list;
}

bool is_flag(const Entry& entry) {
  return entry.path != "words" && entry.path.find('.') == std::string::npos && entry.kind != EntryKind::map;
}

// How many processes the launcher starts, all of which know; 0 where that is not said.
int64_t processes_of(const Document& shell) {
  const auto count = [&](const char* name) -> int64_t {
    const Entry* const entry = shell.find(std::string("launch.") + name);
    const std::optional<double> number = entry ? number_of(value_of_flag(entry->text())) : std::nullopt;
    return number && *number >= 1 && *number <= 1e6 ? static_cast<int64_t>(*number) : 0;
  };
  const int64_t nodes = std::max<int64_t>(1, count("nnodes"));
  for (const char* name : {"nproc_per_node", "num_gpus"})
    if (const int64_t each = count(name)) return each * nodes;
  return count("num_processes");
}

// "trainer.rows=4", as Hydra has it.
bool is_of_a_section(const Entry& entry) {
  return entry.path.find('.') != std::string::npos && !entry.path.starts_with("launch.") && !entry.path.starts_with("env.");
}

// Of a file of keys that is handed on, below others: the script may know it by its last part alone.
bool is_below(const Entry& entry) { return entry.line == 0 && is_of_a_section(entry); }

PythonFlags flags_of(const Document& shell, const std::string& config) {
  PythonFlags flags;
  if (const int64_t processes = processes_of(shell))
    flags.give_variable("WORLD_SIZE", {.kind = Kind::number, .text = std::to_string(processes)});
  const Words unread(shell.unread.begin(), shell.unread.end());
  std::map<std::string_view, int> leaves;
  for (const Entry& entry : shell.entries) ++leaves[entry.leaf()];
  for (const Entry& entry : shell.entries) {
    const bool below = is_below(entry) && entry.kind != EntryKind::map && leaves[entry.leaf()] == 1;
    if (is_flag(entry) || below) flags.give_option(std::string(entry.leaf()), value_of_flag(entry, unread));
    if (is_of_a_section(entry) && !is_below(entry)) flags.give_option(entry.path, value_of_flag(entry, unread));
    if (entry.path == "words")
      for (const std::string& word : entry.values)
        flags.give_word(unread.contains(word) ? PythonValue() : value_of_flag(word));
    if (entry.path.starts_with("env.")) flags.give_variable(entry.path.substr(4), value_of_flag(entry, unread));
  }
  if (!config.empty() && !shell.has("config")) flags.give_option("config", {.kind = Kind::text, .text = config});
  return flags;
}

bool means_the_same(const Entry& a, const Entry& b) {
  if (a.values.size() != b.values.size()) return false;
  for (size_t i = 0; i < a.values.size(); ++i)
    if (value_of_flag(a.values[i]).text != value_of_flag(b.values[i]).text) return false;
  return true;
}

// Whether the Trainer or TRL has a key of that name, or one that touches memory; others a script has for itself.
bool is_trainers(std::string_view path) {
  const dialects::Rules& rules = rules_of(Dialect::hugging_face);
  return std::ranges::any_of(rules.rows, [&](const Row& row) { return row.theirs == path; }) ||
         std::ranges::any_of(rules.touches, [&](const Touch& touch) { return touch.theirs == path; });
}

// What the script makes of its flags, where the flags stood.
std::vector<Entry> merged(const Document& shell, StartedPython& python, const PythonFlags& flags, bool reads_config) {
  std::vector<Entry> entries;
  for (const Entry& entry : shell.entries) {
    const bool launcher = entry.path.starts_with("launch.") || entry.path.starts_with("env.");
    const bool handed_on = entry.line == 0 && !launcher;
    const Entry* const said = python.document.find(entry.path);
    const bool taken = ((is_flag(entry) || is_below(entry)) && flags.is_taken(std::string(entry.leaf()))) ||
                       (is_of_a_section(entry) && flags.is_taken(entry.path));
    // What the script does with it is not seen, but its name tells.
    const bool model = !python.document.has("model_name_or_path") && entry.leaf().find("model") != std::string_view::npos;
    const bool used =
        (taken && !model && (python.document.own_options || !is_trainers(entry.path))) || flags.is_away(entry.path);
    if (!launcher && ((handed_on && reads_config) || used || (said && !means_the_same(*said, entry)))) continue;
    if (said) std::erase_if(python.document.entries, [&](const Entry& one) { return one.path == entry.path; });
    entries.push_back(entry);
  }
  for (Entry& entry : python.document.entries) {
    const auto flag = python.flags.find(entry.path);
    const Entry* const source = flag == python.flags.end() ? nullptr : shell.find(flag->second);
    Entry made = source ? *source : Entry{};
    made.path = entry.path;
    made.kind = entry.kind;
    made.values = std::move(entry.values);
    made.in_place = made.in_place && source && means_the_same(*source, made);
    entries.push_back(std::move(made));
  }
  return entries;
}

// Others' programs are read by their flags, verl's by its words, whatever its modules are called.
bool is_anybodys(const Document& shell) {
  if (has_any(shell, {"actor_rollout_ref.model.path", "model.partial_pretrain"})) return false;
  const std::optional<Dialect> dialect = recognise(shell);
  return !dialect || *dialect == Dialect::hugging_face || *dialect == Dialect::trl || *dialect == Dialect::unsloth;
}

// Settings that Hydra puts together for a script in which nothing is seen to train: by their names, behind what the command
// says.
void read_settings_of(const std::string& text, const std::filesystem::path& path, PythonFlags flags, Document& shell) {
  const std::vector<PythonToken> tokens = python_tokens(text, path.string());
  const std::string name = hydras_settings(tokens);
  if (name.empty()) return;
  PythonFiles files(path.string(), &flags);
  std::optional<Document> settings = files.take_groups(tokens)->put_together(name);
  if (!settings) return;
  std::erase_if(shell.entries, [&](const Entry& entry) { return flags.is_away(entry.path); });
  const auto shown = [&](const std::string& file) {
    const std::filesystem::path whole = (path.parent_path() / file).lexically_normal();
    const std::filesystem::path near = whole.lexically_relative(std::filesystem::path(shell.where).parent_path());
    return near.empty() ? whole : near;  // one of them is absolute
  };
  settings->beside.push_back(name);
  for (const std::string& file : settings->beside) shell.beside.push_back(shown(file).string());
  shell.notes.push_back(fmt::format("what {} makes of its settings is not seen: taken by the names that they have in {}",
                                    path.filename().string(), shell.beside.back()));
  std::erase_if(settings->entries, [&](const Entry& entry) { return shell.has(entry.path); });
  for (Entry& entry : settings->entries) entry.line = 0;  // unlike the command's
  std::ranges::copy_if(shell.entries, std::back_inserter(settings->entries), is_of_a_section);
  std::erase_if(shell.entries, is_of_a_section);
  if (std::optional<Document> renamed = by_trainers_names(*settings, true)) settings = std::move(renamed);
  std::erase_if(settings->entries, [](const Entry& entry) {
    return entry.line == 0 && entry.path != "use_peft" && std::ranges::find(kMatter, entry.path) == kMatter.end();
  });
  put_before(std::move(*settings), shell);
}

}  // namespace

void read_started(const std::filesystem::path& script, const std::string& config, Document& shell) {
  if (!is_anybodys(shell)) return;
  const std::optional<std::filesystem::path> path = find_beside(shell.where, script, Look::by_last_name);
  if (!path) return;
  PythonFlags flags = flags_of(shell, config);
  StartedPython python;
  std::string text;
  try {
    text = read_text(*path, static_cast<int64_t>(kLargestDocumentBytes), 0, "");
    python = read_started_python(text, path->string(), flags);
  } catch (const Error&) {  // trains nothing, or is no Python
    try {
      read_settings_of(text, *path, flags_of(shell, config), shell);
    } catch (const Error&) {
    }
    return;
  }
  std::vector<std::string> untold;  // what only Python knows
  for (const std::string& key : python.document.unread)
    if (python.document.has(key) || !shell.has(key)) untold.push_back(key);
  const bool reads_config = std::ranges::find(python.document.beside, config) != python.document.beside.end();
  shell.entries = merged(shell, python, flags, reads_config);
  shell.command = python.document.command;
  const std::string name = script.lexically_normal().string();
  shell.started = name;
  shell.own_options = python.document.own_options;
  if (std::ranges::find(shell.beside, name) == shell.beside.end()) shell.beside.push_back(name);
  for (std::string& file : python.document.beside)
    if (std::ranges::find(shell.beside, file) == shell.beside.end()) shell.beside.push_back(std::move(file));
  for (const std::string& key : untold)
    shell.notes.push_back(fmt::format("only Python knows {}: what it stands for is not read", key));
  std::ranges::move(python.document.notes, std::back_inserter(shell.notes));
  std::ranges::move(python.document.firsts, std::back_inserter(shell.firsts));
}

}  // namespace snug::dialects
