#include "cli/cli.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "ask/options.h"
#include "base/version.h"
#include "cli/command_table.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace snug::cli {

namespace {

std::string command_names() {
  std::string names;
  for (const Command& command : commands())
    names += (names.empty() ? "" : command.name == commands().back().name ? " or " : ", ") + std::string(command.name);
  return names;
}

int dispatch(std::span<char* const> arguments) {
  if (arguments.empty()) {
    help_command({});
    return 2;
  }
  const std::string_view name = arguments[0];
  if (name == "--help" || name == "-h") return help_command({});
  if (name == "--version") {
    fmt::print("snug {}\n", kVersion);
    return 0;
  }
  const Command* const command = find_command(name);
  if (!command) throw UsageError(fmt::format("there is no command '{}'; try {}", name, command_names()));
  const auto rest = arguments.subspan(1);
  for (const char* word : rest) {
    if (std::string_view(word) == "--") break;  // what follows is another program's
    if (std::string_view(word) == "--help" || std::string_view(word) == "-h") return help_command(arguments.first(1));
  }
  return command->run(rest);
}

}  // namespace

int run(int argc, char** argv) {
  Terminal terminal;
  const auto words = std::span<char* const>(argv, static_cast<size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  return exit_code_of([&] { return dispatch(words); }, terminal);
}

}  // namespace snug::cli
