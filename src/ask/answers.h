#pragma once
// The commands that answer a question and run nothing, one file each. Each returns the exit code; errors are thrown.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ask/asker.h"

namespace snug {

int answer_plan(std::span<char* const> words, Asker& asker);
int answer_fit(std::span<char* const> words, Asker& asker);
int answer_explain(std::span<char* const> words, Asker& asker);
int answer_models(std::span<char* const> words, Asker& asker);
int answer_gpus(std::span<char* const> words, Asker& asker);

// The flags of their own, as parse_options takes them.
std::vector<std::string> plan_flags();
std::vector<std::string> fit_flags();
std::vector<std::string> explain_flags();
std::vector<std::string> catalogue_flags();

// A question in the words of the command line, its command first. Never throws, but where memory for the reply runs out;
// keeps no state, so that several threads may ask at once.
Reply ask(std::span<const std::string> words);

}  // namespace snug
