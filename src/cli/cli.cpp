#include "cli/cli.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace snug::cli {

namespace {

struct Command {
  std::string_view name;
  int (*run)(std::span<char* const>);
};

constexpr Command kCommands[] = {
    {"plan", plan_command},         {"fit", fit_command},         {"explain", explain_command},   {"watch", watch_command},
    {"data", data_command},         {"train", train_command},     {"generate", generate_command}, {"merge", merge_command},
    {"quantize", quantize_command}, {"export", export_command},   {"init", init_command},         {"models", models_command},
    {"gpus", gpus_command},         {"measure", measure_command}, {"probe", probe_command},       {"help", help_command}};

std::string command_names() {
  std::string names;
  for (const Command& command : kCommands)
    names += (names.empty() ? "" : command.name == std::end(kCommands)[-1].name ? " or " : ", ") + std::string(command.name);
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
  for (const Command& command : kCommands) {
    if (command.name != name) continue;
    const auto rest = arguments.subspan(1);
    for (const char* word : rest) {
      if (std::string_view(word) == "--") break;  // what follows is another program's
      if (std::string_view(word) == "--help" || std::string_view(word) == "-h") return help_command(arguments.first(1));
    }
    return command.run(rest);
  }
  throw UsageError(fmt::format("there is no command '{}'; try {}", name, command_names()));
}

}  // namespace

int run(int argc, char** argv) {
  try {
    return dispatch(std::span<char* const>(argv, static_cast<size_t>(argc)).subspan(argc > 0 ? 1 : 0));
  } catch (const UsageError& error) {
    fmt::print(stderr, "snug: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "snug: {}\n", error.what());
    return 1;
  }
}

}  // namespace snug::cli
