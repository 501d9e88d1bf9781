// The commands that only answer, asked from the terminal.

#include "ask/answers.h"

#include "cli/commands.h"
#include "cli/terminal.h"
#include "cli/try_advice.h"

namespace snug::cli {

int plan_command(std::span<char* const> words) {
  Terminal terminal;
  return answer_plan(words, terminal);
}

int fit_command(std::span<char* const> words) {
  Terminal terminal;
  return answer_fit(words, terminal);
}

int explain_command(std::span<char* const> words) {
  if (!words.empty() && std::string_view(words.front()) == "--try") return try_advice(words.subspan(1));
  Terminal terminal;
  return answer_explain(words, terminal);
}

int models_command(std::span<char* const> words) {
  Terminal terminal;
  return answer_models(words, terminal);
}

int gpus_command(std::span<char* const> words) {
  Terminal terminal;
  return answer_gpus(words, terminal);
}

}  // namespace snug::cli
