#pragma once
// The one table of commands: which there are, what each takes. The program is dispatched by it, words are read by it, and
// the man page and what shells complete are made from it, so that none can tell of what another does not know.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snug::cli {

// What a word may name, for those who complete it.
enum class Names : uint8_t { nothing, file, directory, model, accelerator, process, command, shell };

struct Command {
  std::string_view name;
  int (*run)(std::span<char* const> words);
  Names words = Names::nothing;    // what stands without a flag
  std::vector<std::string> flags;  // its own, as parse_options takes them
  bool keys = false;               // recipe keys are flags too
};

// In the order in which they are listed.
const std::vector<Command>& commands();

// Null if there is none.
const Command* find_command(std::string_view name);

// The flags of a command that there is.
const std::vector<std::string>& own_flags(std::string_view command);

}  // namespace snug::cli
