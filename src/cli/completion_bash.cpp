// bash: one function; a case for the words of each command, one for the values of flags.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/version.h"
#include "cli/completion.h"
#include "cli/flag_words.h"

namespace snug::cli {

namespace {

constexpr std::string_view kBashBegin = R"(# bash completion for snug {}, made by `snug completion bash`

_snug_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }}

_snug_files() {{  # -f files, -d directories alone
  local -a files
  mapfile -t files < <(compgen "$1" -- "$current")
  [ ${{#files[@]}} -eq 0 ] || compopt -o filenames 2>/dev/null
  COMPREPLY+=("${{files[@]}}")
}}

_snug_models() {{ _snug_words '{}'; }}

_snug_accelerators() {{ _snug_words '{}'; }}

)";

// What follows `--` is another program's line. `--flag=value` comes as three words.
constexpr std::string_view kBashFunction = R"(_snug() {
  local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} i
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    _snug_words "$_snug_commands --help --version"
    return
  fi
  for ((i = 2; i < COMP_CWORD; ++i)); do
    [ "${COMP_WORDS[i]}" = -- ] || continue
    if declare -F _command_offset >/dev/null; then
      _command_offset $((i + 1))
    elif [ $((i + 1)) -eq "$COMP_CWORD" ]; then
      mapfile -t COMPREPLY < <(compgen -c -- "$current")
    else
      _snug_files -f
    fi
    return
  done
  if [ "$current" = = ]; then
    current=
  elif [ "$flag" = = ]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [[ $flag == --* ]] && _snug_value "$command" "$flag"; then return; fi
  if [[ $current == -* ]]; then _snug_flags "$command"; else _snug_positional "$command"; fi
}

complete -F _snug snug
)";

std::string bash_list(const std::vector<FlagWords>& flags) {
  std::string list;
  for (const FlagWords& flag : flags) list += (list.empty() ? "--" : " --") + flag.name;
  return list;
}

std::string bash_action(Names names) {
  switch (names) {
    case Names::file: return "_snug_files -f";
    case Names::directory: return "_snug_files -d";
    case Names::model: return "_snug_models; _snug_files -f";
    case Names::accelerator: return "_snug_accelerators";
    case Names::command:
    case Names::shell: return fmt::format("_snug_words '{}'", fmt::join(all_names(names), " "));
    case Names::process:
    case Names::nothing: break;
  }
  return "";
}

// A flag that needs a value leaves no room for anything else; one that may stand alone goes on where nothing is begun.
std::string bash_action(const FlagWords& flag) {
  std::string action = bash_action(flag.names);
  if (!flag.words.empty())
    action += fmt::format("{}_snug_words '{}'", action.empty() ? "" : "; ", fmt::join(flag.words, " "));
  if (flag.takes == Takes::value) return action.empty() ? ":" : action;
  return action + "; [ ${#COMPREPLY[@]} -gt 0 ]";
}

// The cases of flags that take something, those with the same action together; `before` each of their names.
std::string bash_cases(const std::vector<FlagWords>& flags, std::string_view before) {
  std::map<std::string, std::string> patterns;  // by action
  for (const FlagWords& flag : flags) {
    if (flag.takes == Takes::nothing) continue;
    std::string& pattern = patterns[bash_action(flag)];
    pattern += fmt::format("{}{}--{}", pattern.empty() ? "" : "|", before, flag.name);
  }
  std::string text;
  for (const auto& [action, pattern] : patterns) text += fmt::format("    {}) {} ;;\n", pattern, action);
  return text;
}

}  // namespace

std::string bash_completion() {
  std::string text = fmt::format(kBashBegin, kVersion, fmt::join(all_names(Names::model), " "),
                                 fmt::join(all_names(Names::accelerator), " "));
  std::string names, flags, positional, values, with_keys;
  for (const Command& command : commands()) {
    const std::vector<FlagWords> own = own_flag_words(command);
    names += (names.empty() ? "" : " ") + std::string(command.name);
    flags += fmt::format("    {}) _snug_words \"{}{} --help\" ;;\n", command.name, bash_list(own),
                         command.keys ? " $_snug_keys" : "");
    positional += fmt::format("    {}) {} ;;\n", command.name, bash_action(command.words));
    values += bash_cases(own, std::string(command.name) + ":");
    if (command.keys) with_keys += (with_keys.empty() ? "" : "|") + std::string(command.name);
  }
  text += fmt::format("_snug_commands='{}'\n_snug_keys='{}'\n\n", names, bash_list(key_flag_words()));
  text += fmt::format("_snug_flags() {{\n  case $1 in\n{}  esac\n}}\n\n", flags);
  text += fmt::format("_snug_positional() {{\n  case $1 in\n{}  esac\n}}\n\n", positional);
  text += fmt::format(
      "_snug_value() {{  # of a flag of a command; false if it takes none\n  case $1:$2 in\n{}    *) _snug_key_value \"$@\" "
      ";;\n  esac\n}}\n\n",
      values);
  text += fmt::format(
      "_snug_key_value() {{\n  case $1 in {}) ;; *) return 1 ;; esac\n  case $2 in\n{}    *) return 1 ;;\n  "
      "esac\n}}\n\n",
      with_keys, bash_cases(key_flag_words(), ""));
  return text + std::string(kBashFunction);
}

}  // namespace snug::cli
