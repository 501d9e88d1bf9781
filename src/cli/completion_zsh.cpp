// zsh: specifications for _arguments, an array for the flags of each command and one for the keys.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.h"
#include "cli/completion.h"
#include "cli/flag_words.h"

namespace snug::cli {

namespace {

// Within '…[…]' of a specification.
std::string zsh_quoted(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(Names names) {
  switch (names) {
    case Names::file: return "_files";
    case Names::directory: return "_files -/";
    case Names::model: return "_snug_models";
    case Names::accelerator: return "_snug_accelerators";
    case Names::process: return "_pids";
    case Names::command:
    case Names::shell: return fmt::format("({})", fmt::join(all_names(names), " "));
    case Names::nothing: break;
  }
  return " ";
}

std::string message_of(Names names) {
  constexpr const char* kMessages[] = {"value", "file", "directory", "model", "accelerator", "process", "command", "shell"};
  return kMessages[static_cast<size_t>(names)];
}

// --flag[help], --flag=[help]:value:action; with two colons where the value may be left out.
std::string zsh_specification(const FlagWords& flag) {
  std::string text = "--" + flag.name;
  if (flag.takes != Takes::nothing) text += "=";
  if (!flag.help.empty()) text += "[" + zsh_quoted(flag.help) + "]";
  if (flag.takes == Takes::nothing) return text;
  const std::string action = flag.words.empty() ? zsh_action(flag.names) : fmt::format("({})", fmt::join(flag.words, " "));
  const std::string message = flag.value.empty() ? message_of(flag.names) : zsh_quoted(flag.value);
  return fmt::format("{}{}{}:{}", text, flag.takes == Takes::value ? ":" : "::", message, action);
}

std::string zsh_lines(const std::vector<FlagWords>& flags, std::string_view indent) {
  std::string text;
  for (const FlagWords& flag : flags) text += fmt::format("{}'{}'\n", indent, zsh_specification(flag));
  return text;
}

std::string zsh_case(const Command& command) {
  const std::string rest = command.name == "measure"
                               ? "'(-)1:command:_command_names -e' '*::argument:_normal'"
                               : fmt::format("'*:{}:{}'", message_of(command.words), zsh_action(command.words));
  return fmt::format("    {})\n      flags=(\n{}      )\n      _arguments -S '--help[what it does]' $flags {}{} ;;\n",
                     command.name, zsh_lines(own_flag_words(command), "        "), command.keys ? "$keys " : "", rest);
}

constexpr std::string_view kZshBegin = R"(#compdef snug
# zsh completion for snug {}, made by `snug completion zsh`

_snug_models() {{
  local -a models=({})
  _alternative 'models:model:compadd -a models' 'files:file:_files'
}}

_snug_accelerators() {{
  local -a cards=({})
  _wanted cards expl accelerator compadd -a cards
}}

)";

}  // namespace

std::string zsh_completion() {
  std::string text = fmt::format(kZshBegin, kVersion, fmt::join(all_names(Names::model), " "),
                                 fmt::join(all_names(Names::accelerator), " "));
  std::string names, cases;
  for (const Command& command : commands()) {
    names += fmt::format("    '{}:{}'\n", command.name, zsh_quoted(summary_of(command.name)));
    cases += zsh_case(command);
  }
  text += fmt::format("_snug_commands() {{\n  local -a names=(\n{}  )\n  _describe command names\n}}\n\n", names);
  text += fmt::format(
      "_snug() {{\n  local curcontext=$curcontext state line ret=1\n  local -a flags keys=(\n{}  )\n"
      "  _arguments -C '(- *)--help[what it does]' '(- *)--version[which snug this is]' \\\n"
      "    '1:command:_snug_commands' '*::argument:->rest' && ret=0\n"
      "  [[ $state == rest ]] || return ret\n  case $line[1] in\n{}  esac\n}}\n\n",
      zsh_lines(key_flag_words(), "    "), cases);
  return text + "if [[ $funcstack[1] == _snug ]]; then _snug \"$@\"; else compdef _snug snug; fi\n";
}

}  // namespace snug::cli
