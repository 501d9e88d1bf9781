#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ask/answers.h"
#include "ask/options.h"

namespace snug {

namespace {

struct Answering {
  std::string_view command;
  int (*answer)(std::span<char* const> words, Asker& asker);
};

constexpr Answering kAnswering[] = {{"plan", answer_plan},
                                    {"fit", answer_fit},
                                    {"explain", answer_explain},
                                    {"models", answer_models},
                                    {"gpus", answer_gpus}};

}  // namespace

Reply ask(std::span<const std::string> words) {
  Listener listener;
  std::vector<std::string> kept(words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : kept) pointers.push_back(word.data());
  const auto answer = [&] {
    const auto* found = kept.empty() ? std::end(kAnswering) : std::ranges::find(kAnswering, kept[0], &Answering::command);
    if (found == std::end(kAnswering)) throw UsageError("what is asked is plan, fit, explain, models or gpus");
    return found->answer(std::span(pointers).subspan(1), listener);
  };
  listener.reply.exit_code = exit_code_of(answer, listener);
  return std::move(listener.reply);
}

}  // namespace snug
