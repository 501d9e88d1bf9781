// snug completion: the script by which a shell completes snug's words.

#include "cli/completion.h"

#include <fmt/format.h>

#include <string_view>

#include "ask/options.h"
#include "cli/commands.h"

namespace snug::cli {

namespace {

std::string script_for(std::string_view shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  throw UsageError(fmt::format("there is no completion for '{}': snug completion bash|zsh|fish", shell));
}

}  // namespace

int completion_command(std::span<char* const> words) {
  const Options options = parse_options(words, {});
  if (options.positional.size() != 1) throw UsageError("for which shell? snug completion bash|zsh|fish");
  fmt::print("{}", script_for(options.positional.front()));
  return 0;
}

}  // namespace snug::cli
