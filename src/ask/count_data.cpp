#include "ask/count_data.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/error.h"

namespace snug {

namespace {

int64_t count_flag(const Arguments& arguments, const std::string& name, int64_t most) {
  const std::string word = arguments.value(name);
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (problem != std::errc() || end != word.data() + word.size() || value < 1 || value > most)
    throw Error("'" + word + "' is no number of this kind", "--" + name,
                fmt::format("give a whole number from 1 to {}", most));
  return value;
}

}  // namespace

std::optional<CountedData> count_data(const Arguments& arguments, const Plan& plan, Asker& asker) {
  if (arguments.has("examples") != arguments.has("example-tokens"))
    throw UsageError("--examples N and --example-tokens M go together");
  if (arguments.has("examples")) {
    const int64_t examples = count_flag(arguments, "examples", kMostExamples);
    const int64_t tokens = count_flag(arguments, "example-tokens", kMostExampleTokens);
    return counted_examples(plan, examples, tokens);
  }
  if (plan.recipe.data.empty()) return std::nullopt;
  if (!std::filesystem::is_directory(plan.recipe.model))
    throw Error("its tokens cannot be counted: a catalogue name brings no tokenizer", plan.recipe.data,
                "give the model's directory, or --examples N --example-tokens M in place of --data");
  return asker.count_rows(plan);
}

}  // namespace snug
