#include "cli/flag_words.h"

#include <algorithm>
#include <cctype>

#include "ask/arguments.h"
#include "cli/help_layout.h"
#include "cli/help_page.h"
#include "model/catalogue.h"
#include "plan/accelerators.h"
#include "recipe/key_values.h"
#include "recipe/keys.h"

namespace snug::cli {

namespace {

bool is_of_flag(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

// Where `--name` stands in a text as a whole word; npos if it does not.
size_t place_of(std::string_view text, const std::string& flag) {
  for (size_t at = text.find(flag); at != std::string_view::npos; at = text.find(flag, at + 1))
    if (const size_t end = at + flag.size(); end == text.size() || !is_of_flag(text[end])) return at;
  return std::string_view::npos;
}

// "N" of "--gpus N [--fsdp]"; of flags that share one, "--bf16, --fp16 true|false", it is that of the last.
std::string value_behind(std::string_view text, size_t at) {
  text.remove_prefix(std::min(text.size(), text.find_first_of(" ,]", at)));
  if (!text.starts_with(' ')) return "";
  text.remove_prefix(1);
  if (text.starts_with('-') || text.starts_with('|') || text.starts_with('[')) return "";
  std::string value(text.substr(0, text.find(' ')));
  while (value.ends_with(',') || value.ends_with(']')) value.pop_back();
  return value;
}

// From a row of the page, or else from its usage. Of two values the one that has a choice tells more.
void take_from_page(std::string_view page, FlagWords& flag) {
  const std::string written = "--" + flag.name;
  for (const HelpPart& part : help_parts(page)) {
    const bool row = part.kind == HelpPart::Kind::row, usage = part.kind == HelpPart::Kind::usage;
    const size_t at = row || usage ? place_of(part.text, written) : std::string_view::npos;
    if (at == std::string_view::npos) continue;
    const std::string value = flag.takes == Takes::nothing ? "" : value_behind(part.text, at);
    if (flag.value.empty() || (flag.value.find('|') == std::string::npos && value.find('|') != std::string::npos))
      flag.value = value;
    if (row && flag.help.empty()) flag.help = part.help;
  }
}

Names names_of(const std::string& flag, std::string_view value) {
  if (flag == "gpu") return Names::accelerator;
  if (value.starts_with("FILE") || value.starts_with("PATH")) return Names::file;
  return value.starts_with("DIR") || value.starts_with("ADAPTER") ? Names::directory : Names::nothing;
}

// "f32|f16|bf16": each stands for itself. "7B|…" and "torch=2.4.1,…" are examples.
std::vector<std::string> words_of(std::string_view value) {
  std::vector<std::string> words;
  if (value.find('|') == std::string_view::npos || std::ranges::any_of(value, [](char c) { return c == '=' || c == ','; }))
    return words;
  while (!value.empty()) {
    const size_t end = std::min(value.find('|'), value.size());
    words.emplace_back(value.substr(0, end));
    value.remove_prefix(std::min(value.size(), end + 1));
  }
  return words;
}

std::string with_dashes(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

FlagWords words_of_key(const Key& key, std::string_view name) {
  const KeyGrammar grammar = grammar_of(key);
  FlagWords flag{.name = with_dashes(name), .takes = takes_of_key(std::string(name)), .value = std::string(key.values)};
  flag.help = key.help.substr(0, key.help.find(". "));
  if (flag.help.ends_with('.')) flag.help.pop_back();
  flag.names = key.name == "model_name_or_path" ? Names::model : names_of(flag.name, grammar.names);
  if (key.name == "data") flag.names = Names::file;
  flag.words = grammar.words;
  return flag;
}

std::vector<FlagWords> make_key_flags() {
  std::vector<FlagWords> flags;
  for (const Key& key : recipe_keys()) {
    flags.push_back(words_of_key(key, key.name));
    for (const std::string_view alias : key.aliases)
      if (alias.find('_') == std::string_view::npos) flags.push_back(words_of_key(key, alias));
  }
  return flags;
}

}  // namespace

std::vector<FlagWords> own_flag_words(const Command& command) {
  std::vector<FlagWords> flags;
  for (const std::string& own : command.flags) {
    FlagWords flag{.name = own.substr(0, own.find('='))};
    flag.takes = own.ends_with('=') ? Takes::value : Takes::nothing;
    for (const std::string_view topic : {command.name, std::string_view("pytorch")}) take_from_page(help_page(topic), flag);
    flag.names = names_of(flag.name, flag.value);
    flag.words = words_of(flag.value);
    flags.push_back(std::move(flag));
  }
  return flags;
}

const std::vector<FlagWords>& key_flag_words() {
  static const std::vector<FlagWords> flags = make_key_flags();
  return flags;
}

std::string summary_of(std::string_view command) {
  const std::string begin = "snug " + std::string(command);
  for (const HelpPart& part : help_parts(help_page("")))
    if (part.kind == HelpPart::Kind::row && part.text.starts_with(begin)) return part.help;
  return "";
}

std::vector<std::string> all_names(Names of) {
  std::vector<std::string> names;
  if (of == Names::model) names = model_names();
  if (of == Names::accelerator)
    for (const Accelerator& card : accelerators()) names.push_back(card.name);
  if (of == Names::shell) names = {"bash", "zsh", "fish"};
  if (of != Names::command) return names;
  for (const Command& command : commands())
    if (command.name != "help") names.emplace_back(command.name);
  for (const char* topic : {"keys", "pytorch", "schema", "man"}) names.emplace_back(topic);
  return names;
}

}  // namespace snug::cli
