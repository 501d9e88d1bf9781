// fish: a line for each command, flag and key.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.h"
#include "cli/completion.h"
#include "cli/flag_words.h"

namespace snug::cli {

namespace {

std::string fish_quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

// -F: files too; fish has no switch for directories alone.
std::string fish_offer(Names names) {
  switch (names) {
    case Names::file: return " -F";
    case Names::directory: return " -a '(__fish_complete_directories)'";
    case Names::model: return " -F -a '$__snug_models'";
    case Names::accelerator: return " -a '$__snug_accelerators'";
    case Names::process: return " -a '(__fish_complete_pids)'";
    case Names::command:
    case Names::shell: return " -a " + fish_quoted(fmt::format("{}", fmt::join(all_names(names), " ")));
    case Names::nothing: break;
  }
  return "";
}

// -r: a value must follow; -x: and it is no file.
std::string fish_line(std::string_view condition, const FlagWords& flag) {
  std::string line = fmt::format("complete -c snug -n {} -l {}{}", condition, flag.name, fish_offer(flag.names));
  if (flag.takes == Takes::value) line += flag.names == Names::file || flag.names == Names::model ? " -r" : " -x";
  if (!flag.words.empty()) line += " -a " + fish_quoted(fmt::format("{}", fmt::join(flag.words, " ")));
  if (!flag.help.empty()) line += " -d " + fish_quoted(flag.help);
  return line + "\n";
}

bool is_among(const std::vector<FlagWords>& flags, std::string_view name) {
  for (const FlagWords& flag : flags)
    if (flag.name == name) return true;
  return false;
}

}  // namespace

std::string fish_completion() {
  std::string text = fmt::format("# fish completion for snug {}, made by `snug completion fish`\n\n", kVersion);
  text += fmt::format("set -g __snug_models {}\nset -g __snug_accelerators {}\n\n", fmt::join(all_names(Names::model), " "),
                      fmt::join(all_names(Names::accelerator), " "));
  text += "complete -c snug -f\ncomplete -c snug -l help -d 'What it does'\n";
  text += "complete -c snug -n __fish_use_subcommand -l version -d 'Which snug this is'\n\n";
  std::string flags;
  for (const Command& command : commands()) {
    const std::string seen = fmt::format("'__fish_seen_subcommand_from {}'", command.name);
    text += fmt::format("complete -c snug -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_quoted(summary_of(command.name)));
    if (command.name == "measure") flags += fmt::format("complete -c snug -n {} -F -a '(__fish_complete_command)'\n", seen);
    if (const std::string offer = fish_offer(command.words); !offer.empty())
      flags += fmt::format("complete -c snug -n {}{}\n", seen, offer);
    const std::vector<FlagWords> own = own_flag_words(command);
    for (const FlagWords& flag : own) flags += fish_line(seen, flag);
  }
  text += "\n" + flags + "\n";
  for (const FlagWords& flag : key_flag_words()) {
    std::string with_keys;
    for (const Command& command : commands())
      if (command.keys && !is_among(own_flag_words(command), flag.name)) with_keys += " " + std::string(command.name);
    text += fish_line(fmt::format("'__fish_seen_subcommand_from{}'", with_keys), flag);
  }
  return text;
}

}  // namespace snug::cli
