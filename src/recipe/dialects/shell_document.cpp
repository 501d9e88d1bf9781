// Shell script -> Document: the command that trains, its flags as entries; what launches it as "launch.…", what it finds in
// its environment as "env.…".

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "recipe/dialects/beside.h"
#include "recipe/dialects/handed_on.h"
#include "recipe/dialects/reading.h"
#include "recipe/dialects/shell_words.h"
#include "recipe/dialects/started_script.h"

namespace snug::dialects {

namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view word) {
  return word == "python" || word == "python3" || word.starts_with("python3.") || word.ends_with("/python") ||
         word.ends_with("/python3");
}

template <class Visit>
bool any_tool(const Visit& visit) {
  return std::ranges::any_of(kDialects,
                             [&](Dialect dialect) { return std::ranges::any_of(rules_of(dialect).tools, visit); });
}

// Where the flags of the command's own begin, and what it is called; nothing if it does not train.
struct Found {
  size_t launcher = 0;  // first word of what launches it
  size_t flags = 0;     // first word after the command
  std::vector<std::string> command;
  const Tool* tool = nullptr;  // none for Python's scripts
  std::string script = {};     // of Python's: the file
};

bool find_tool(const Command& words, Found& found) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& verb = words[i + 1].text;
    const bool theirs = any_tool([&](const Tool& tool) {
      const bool module = words[i].text == "-m" && !tool.module.empty() && verb == tool.module;
      if (!module && (base_name(words[i].text) != tool.program || std::ranges::find(tool.verbs, verb) == tool.verbs.end()))
        return false;
      found = {i, i + 2, {std::string(tool.program), module ? std::string(tool.verbs[0]) : verb}, &tool};
      return true;
    });
    if (theirs) return true;
  }
  return false;
}

// "python train.py --…", with any launcher before it.
bool find_script(const Command& words, Found& found) {
  size_t launcher = words.size();
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    const std::string_view name = base_name(word);
    const bool launches =
        is_python(word) || name == "torchrun" || name == "accelerate" || name == "deepspeed" || name == "accelerate-launch";
    if (launches) launcher = std::min(launcher, i);
    const bool named = i > 0 && (words[i - 1].text == "-m" || words[i - 1].text == "--module");
    const bool module = named && !word.starts_with("torch.distributed");
    if (launcher < i && (word.ends_with(".py") || module)) {
      std::string file = word;
      if (module && !word.ends_with(".py")) {
        std::ranges::replace(file, '.', '/');
        file += ".py";
      }
      found = {launcher, i + 1, {"python", std::string(name)}, nullptr, std::move(file)};
      return true;
    }
  }
  return false;
}

constexpr std::string_view kOthers[] = {"infer", "inference", "deploy", "export", "eval",     "evaluate", "app",
                                        "web",   "webui",     "chat",   "sample", "rollout",  "merge",    "merge_lora",
                                        "api",   "quantize",  "serve",  "demo",   "generate", "predict",  "preprocess"};

bool ends_as(std::string_view script, std::string_view word) {
  script = script.substr(0, script.rfind(".py"));
  if (!script.ends_with(word)) return false;
  return script.size() == word.size() ||
         std::string_view("_-.").find(script[script.size() - word.size() - 1]) != std::string_view::npos;
}

// "swift infer", "infer.py": what a command does that is known not to train; "" for others.
std::string other_work(const Command& words) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string_view name = base_name(words[i].text);
    const bool tool = any_tool([&](const Tool& t) { return t.program == name; });
    for (const std::string_view other : kOthers)
      if (tool && words[i + 1].text == other) return fmt::format("{} {}", name, other);
  }
  return {};
}

// Its name says that it does something else, and nothing in its flags says that it trains.
bool is_other_script(const Command& words, const Found& found) {
  if (found.command[0] != "python") return false;
  const bool named = std::any_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view other) {
    return ends_as(found.command[1], other) || found.command[1].starts_with("export_") ||
           found.command[1].starts_with("eval_") || found.command[1].starts_with("evaluate_") ||
           found.command[1].starts_with("infer_");
  });
  const bool trains = std::any_of(words.begin(), words.end(), [](const Word& word) {
    for (const char* flag : {"--learning_rate", "--lr", "--per_device_train_batch_size", "--num_train_epochs", "--do_train",
                             "--gradient_accumulation_steps", "--max_steps"})
      if (word.text == flag || word.text.starts_with(std::string(flag) + "=")) return true;
    return false;
  });
  return named && !trains;
}

// "cd src": where the script goes before `until`; "" where it does not.
std::filesystem::path folder_of(const std::vector<Command>& commands, const Command* until) {
  std::filesystem::path folder;
  for (const Command& command : commands) {
    if (&command == until) break;
    if (command.size() == 2 && command[0].text == "cd") folder = folder / command[1].text;
  }
  return folder;
}

// By which path the Python script is found: where the shell went, in a folder of that name, or as it is.
std::filesystem::path script_of(const std::vector<Command>& commands, const Command* until, const std::string& script,
                                const std::string& where) {
  const size_t slash = script.find('/');
  if (script.starts_with('$') && slash != std::string::npos)  // "${ROOT}/src/train.py"
    return script_of(commands, until, script.substr(slash + 1), where);
  const std::filesystem::path folder = folder_of(commands, until);
  const std::filesystem::path last = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  for (const std::filesystem::path& path : {folder / script, last / script})
    if (!folder.empty() && find_beside(where, path, Look::above)) return path;
  return script;
}

// "petro-train --model_name_or_path …": a program that nobody knows, whose flags are the Trainer's; of "align-cli dpo …",
// which says what it does, fewer.
const Command* unknown_program(const std::vector<Command>& commands, Found& found) {
  constexpr std::array<std::string_view, 6> kTrainers = {"--model_name_or_path",
                                                         "--per_device_train_batch_size",
                                                         "--gradient_accumulation_steps",
                                                         "--learning_rate",
                                                         "--num_train_epochs",
                                                         "--output_dir"};
  for (const Command& command : commands) {
    size_t first = 0;
    while (first < command.size() && is_assignment(command[first].text)) ++first;
    const auto flags = std::ranges::count_if(command, [&](const Word& word) {
      return std::ranges::find(kTrainers, word.text.substr(0, word.text.find('='))) != kTrainers.end();
    });
    if (first + 1 >= command.size() || command[first].text.starts_with("-")) continue;
    constexpr std::array<std::string_view, 5> kVerbs = {"sft", "dpo", "train", "finetune", "pretrain"};
    const bool verb = std::ranges::find(kVerbs, command[first + 1].text) != kVerbs.end();
    const bool mlx = base_name(command[first].text).starts_with("mlx_lm.");
    if (!mlx && flags < (verb ? 2 : 4)) continue;
    found = {first, first + (verb ? 2 : 1), {"python", std::string(base_name(command[first].text))}, nullptr};
    return &command;
  }
  return nullptr;
}

// "bash train.sh", "sbatch --export=ALL,RANK=8 train.slurm", "srun -n 4 sh train.sh", "./train.sh": a script that a script
// starts.
struct StartedShell {
  std::string name;
  Command arguments;
  ShellVariables variables = {};  // for it alone
};

// "--export=ALL,RANK=8" of a queue's command.
void take_exported(std::string_view list, ShellVariables& variables) {
  for (; !list.empty(); list.remove_prefix(std::min(list.size(), list.find(',') + 1))) {
    const std::string_view one = list.substr(0, list.find(','));
    if (const size_t equals = one.find('='); equals != std::string_view::npos && equals > 0)
      variables[std::string(one.substr(0, equals))] = one.substr(equals + 1);
    if (list.find(',') == std::string_view::npos) return;
  }
}

std::vector<StartedShell> started_scripts(const std::vector<Command>& commands) {
  constexpr std::array<std::string_view, 4> kStart = {"bash", "sh", "source", "."};
  constexpr std::array<std::string_view, 3> kQueues = {"sbatch", "srun", "qsub"};  // whose own flags stand before it
  constexpr std::string_view kExport = "--export=";
  constexpr size_t kMost = 8, kMostFlags = 32;
  std::vector<StartedShell> all;
  for (const Command& command : commands) {
    if (all.size() == kMost) break;
    size_t first = 0;  // behind "CUDA_VISIBLE_DEVICES=0"
    while (first < command.size() && is_assignment(command[first].text)) ++first;
    const std::string_view program = first < command.size() ? base_name(command[first].text) : std::string_view();
    const bool queue = std::ranges::find(kQueues, program) != kQueues.end();
    const bool starts = queue || std::ranges::find(kStart, program) != kStart.end();
    ShellVariables exported;
    for (size_t i = first; i < std::min(command.size(), first + (queue ? kMostFlags : 2)); ++i) {
      const std::string& word = command[i].text;
      if (queue && word.starts_with(kExport) && !command[i].unread)
        take_exported(std::string_view(word).substr(kExport.size()), exported);
      const bool script = std::ranges::any_of(std::array<std::string_view, 4>{".sh", ".bash", ".slurm", ".sbatch"},
                                              [&](std::string_view end) { return word.ends_with(end); });
      if (!script || (i != first && !starts)) continue;
      StartedShell started{word, Command(command.begin() + static_cast<std::ptrdiff_t>(i) + 1, command.end()),
                           std::move(exported)};
      for (size_t at = 0; at < first; ++at)
        if (const size_t equals = command[at].text.find('='); !command[at].unread)
          started.variables[command[at].text.substr(0, equals)] = command[at].text.substr(equals + 1);
      all.push_back(std::move(started));
      break;
    }
  }
  return all;
}

class Flags {
 public:
  Flags(Document& document, const Command& words) : document_(document), words_(words) {}

  // Words [begin, end) as entries below `prefix`; words with "=" and without dashes are keys where `pairs`.
  void read(size_t begin, size_t end, const std::string& prefix, bool pairs) {
    for (size_t i = begin; i < end;) {
      const Word& word = words_[i];
      if (is_flag(word.text, prefix)) {
        i = flag(i, end, prefix, pairs);
      } else if (pairs && word.text.find('=') != std::string::npos && word.text.find('=') > 0) {
        pair(word, prefix);
        ++i;
      } else {
        if (word.unread) document_.unread.push_back(word.text);
        if (word.text != "\\") positional(prefix + "words", word);
        ++i;
      }
    }
  }

  void pair(const Word& word, const std::string& prefix) {
    const size_t equals = word.text.find('=');
    const size_t first = std::min(word.text.find_first_not_of('+'), equals);  // Hydra's "+key=value"
    Entry entry = made(prefix + word.text.substr(first, equals - first), word);
    entry.values = {word.text.substr(equals + 1)};
    part(entry, word, entry.values[0]);
    push(std::move(entry));
  }

 private:
  Entry made(std::string path, const Word& word) const {
    std::replace(path.begin(), path.end(), '-', '_');
    if (path.size() > 200) throw Error("a flag is longer than 200 bytes", document_.where);
    const auto begin = document_.text.begin();
    Entry entry;
    entry.path = std::move(path);
    entry.line = std::count(begin, begin + static_cast<std::ptrdiff_t>(word.span.begin), '\n') + 1;
    entry.name = word.span;
    return entry;
  }

  // The value is the end of the word itself, with or without quotes, right behind the first "=".
  void part(Entry& entry, const Word& word, const std::string& value) const {
    const std::string_view raw = std::string_view(document_.text).substr(word.span.begin, word.span.end - word.span.begin);
    const size_t after = std::min(raw.find('='), raw.size() - 1) + 1;
    const std::string_view tail = raw.substr(after);
    entry.in_place = word.in_place && (tail == value || tail == '"' + value + '"' || tail == "'" + value + "'");
    entry.value = {word.span.begin + after, word.span.end};
    entry.name.end = entry.value.begin;
  }

  size_t flag(size_t i, size_t end, const std::string& prefix, bool pairs) {
    const Word& word = words_[i];
    const size_t equals = word.text.find('=');
    const size_t dashes = word.text.starts_with("--") ? 2 : 1;
    Entry entry = made(prefix + word.text.substr(dashes, equals == std::string::npos ? equals : equals - dashes), word);
    size_t next = i + 1;
    if (equals != std::string::npos) {
      entry.values = {word.text.substr(equals + 1)};
      part(entry, word, entry.values[0]);
    } else {
      while (next < end && !is_flag(words_[next].text, prefix) &&
             !(pairs && words_[next].text.find('=') != std::string::npos))
        entry.values.push_back(words_[next++].text);
      if (entry.values.size() == 1) {
        entry.value = words_[next - 1].span;
        entry.in_place = words_[next - 1].in_place;
      } else if (entry.values.empty()) {
        entry.values = {"true"};
        entry.value = {word.span.end, word.span.end};
        entry.in_place = word.in_place;
      } else {
        entry.kind = EntryKind::list;
        entry.value = {words_[i + 1].span.begin, words_[next - 1].span.end};
      }
    }
    for (size_t at = i; at < next; ++at)
      if (words_[at].unread) document_.unread.push_back(words_[at].text);
    push(std::move(entry));
    return next;
  }

  // "--rows", and of the command itself "-b"; "-1" is a value.
  static bool is_flag(const std::string& word, const std::string& prefix) {
    if (word.starts_with("--")) return word.size() > 2 && word[2] != '=';
    return prefix.empty() && word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0;
  }

  void positional(const std::string& path, const Word& word) {
    for (Entry& entry : document_.entries) {
      if (entry.path != path) continue;
      entry.values.push_back(word.text);
      return;
    }
    Entry entry = made(path, word);
    entry.kind = EntryKind::list;
    entry.values = {word.text};
    push(std::move(entry));
  }

  void push(Entry entry) { document_.entries.push_back(std::move(entry)); }

  Document& document_;
  const Command& words_;
};

}  // namespace

namespace {

// The command of a script that trains.
struct Chosen {
  const Command* command = nullptr;  // null: none does
  Found found;
  std::string other;  // what another does instead
};

Chosen chosen_of(const std::vector<Command>& commands) {
  Chosen chosen;
  for (const Command& command : commands) {
    Found found;
    if (const std::string work = other_work(command); !work.empty()) {
      if (chosen.other.empty()) chosen.other = work;
      continue;
    }
    if (!find_tool(command, found) && !find_script(command, found)) continue;
    if (is_other_script(command, found)) {
      if (chosen.other.empty()) chosen.other = found.command[1];
      continue;
    }
    const Command* const before = chosen.command;
    const bool tool = found.command[0] != "python", had_tool = before && chosen.found.command[0] != "python";
    const bool named = sounds_like_training(found.command[1]);
    const bool had_name = before && sounds_like_training(chosen.found.command[1]);
    const bool longer = !before || command.size() - found.flags > before->size() - chosen.found.flags;
    const bool better = tool != had_tool ? tool : !tool && named != had_name ? named : longer;
    if (before && !better) continue;
    chosen.command = &command;
    chosen.found = found;
  }
  if (!chosen.command) chosen.command = unknown_program(commands, chosen.found);
  return chosen;
}

[[noreturn]] void refuse(const Chosen& chosen, const std::vector<Command>& commands, const std::string& where) {
  if (!chosen.other.empty())
    throw Error(fmt::format("the script runs {}, which does not train", chosen.other.substr(0, 100)), where,
                "give the script that trains");
  if (const auto started = started_scripts(commands); !started.empty())
    throw Error(fmt::format("what trains is in {}", started.front().name.substr(0, 100)), where, "give that script");
  throw Error("no command of the script trains a model", where,
              "swift sft, llamafactory-cli train, axolotl train, tune run, trl sft, unsloth train, or python X.py --…");
}

// Functions that nothing calls are read where nothing else trains.
Script commands_of(std::string_view text, const std::string& where, Started started) {
  Script script = shell_commands(text, where, started);
  if (!script.uncalled || chosen_of(script.commands).command || !started_scripts(script.commands).empty()) return script;
  started.reads_all = true;
  return shell_commands(text, where, started);
}

// None where it is not there, or neither trains nor starts others. Nothing of it can be changed.
std::optional<Script> read_started_shell(StartedShell& started, const Script& by, const std::string& where) {
  const auto text = read_beside(where, started.name, static_cast<int64_t>(kLargestDocumentBytes));
  if (!text) return std::nullopt;
  ShellVariables variables = by.variables;
  for (const auto& [name, value] : started.variables) variables[name] = value;
  Script script = commands_of(*text, where, {std::move(variables), started.arguments, true});
  if (!chosen_of(script.commands).command && started_scripts(script.commands).empty()) return std::nullopt;
  for (Command& command : script.commands)
    for (Word& word : command) {
      word.span = {};
      word.in_place = false;
    }
  return script;
}

// What trains may stand in a script that this one starts, beside it; what is read there cannot be changed here.
Script with_started(Document& document) {
  Script script = commands_of(document.text, document.where, {});
  document.blank_ends = script.blank_ends;
  constexpr int kDeepest = 4;
  for (int depth = 0; depth < kDeepest && !chosen_of(script.commands).command; ++depth) {
    std::optional<Script> next;  // the first that trains or starts others
    for (StartedShell& started : started_scripts(script.commands)) {
      next = read_started_shell(started, script, document.where);
      if (!next) continue;
      document.beside.push_back(started.name);
      break;
    }
    if (!next) break;
    script = std::move(*next);
  }
  return script;
}

void read_environment(const std::vector<Command>& commands, const Chosen& chosen, Document& document) {
  for (const Command& command : commands) {
    Flags environment(document, command);
    const bool all = std::all_of(command.begin(), command.end(),
                                 [](const Word& w) { return is_assignment(w.text) || w.text == "export"; });
    if (!all && &command != chosen.command) continue;
    for (size_t i = 0; i < (all ? command.size() : chosen.found.launcher); ++i)
      if (is_assignment(command[i].text)) environment.pair(command[i], "env.");
    if (&command == chosen.command) break;
  }
}

// Hydra's "trainer.batch_size=4 +data.rows=2" behind a script.
bool overrides_keys(const Command& words, size_t begin) {
  const auto is_pair = [](const Word& word) {
    const size_t equals = word.text.find('='), first = word.text.find_first_not_of('+');
    if (equals == std::string::npos || first == std::string::npos || first >= equals) return false;
    return std::all_of(word.text.begin() + static_cast<std::ptrdiff_t>(first),
                       word.text.begin() + static_cast<std::ptrdiff_t>(equals),
                       [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; });
  };
  return std::count_if(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end(), is_pair) >= 2;
}

void read_flags(const Chosen& chosen, Document& document) {
  const Found& found = chosen.found;
  const Command& words = *chosen.command;
  Flags flags(document, words);
  if (found.tool && found.tool->launches) {  // launcher's flags, the recipe's name, then --config and pairs
    size_t config = found.flags;
    while (config < words.size() && !words[config].text.starts_with("--config")) ++config;
    flags.read(found.flags, config, "launch.", false);
    flags.read(config, words.size(), "", found.tool->pairs);
  } else {
    flags.read(found.launcher, std::max(found.launcher, found.flags - 1), "launch.", false);
    flags.read(found.flags, words.size(), "", found.tool ? found.tool->pairs : overrides_keys(words, found.flags));
  }
}

// OpenRLHF's flags in groups, as it has them of late, by the names that they had before.
void ungroup_openrlhf(Document& document) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kBefore = {
      {{"model.model_name_or_path", "pretrain"},
       {"actor.model_name_or_path", "pretrain"},
       {"train.batch_size", "train_batch_size"},
       {"train.micro_batch_size", "micro_train_batch_size"},
       {"train.max_epochs", "max_epochs"},
       {"data.max_len", "max_len"}}};
  if (std::ranges::none_of(document.command, [](const std::string& word) { return word.starts_with("openrlhf."); })) return;
  for (Entry& entry : document.entries)
    for (const auto& [now, before] : kBefore)
      if (entry.path == now) entry.path = before;
}

}  // namespace

Document read_shell(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::shell, .text = std::string(text), .where = where};
  const Script script = with_started(document);
  const Chosen chosen = chosen_of(script.commands);
  if (!chosen.command) refuse(chosen, script.commands, where);
  document.command = chosen.found.command;
  read_environment(script.commands, chosen, document);
  read_flags(chosen, document);
  ungroup_openrlhf(document);
  read_launcher_settings(script.written, document);
  const std::string config = handed_on(document);
  read_handed_on(script.written, document);
  if (!chosen.found.script.empty())
    read_started(script_of(script.commands, chosen.command, chosen.found.script, where), config, document);
  return document;
}

}  // namespace snug::dialects
