// snug fit: what should I change? The best recipe for the memory at hand.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "advise/foreign_fit.h"
#include "advise/recommend.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/count_data.h"
#include "cli/pytorch_answer.h"
#include "cli/target_flags.h"
#include "cli/terminal.h"
#include "formats/file.h"
#include "model/catalogue.h"
#include "recipe/yaml.h"
#include "report/fit_report.h"

namespace snug::cli {

namespace {

// The search is of snug's own engine: what PyTorch would need for its best recipe stands below, so that nobody takes the one
// for the other.
std::string beside_pytorch(const Arguments& arguments, const FitAnswer& answer) {
  if (!answer.fits()) return "";
  Arguments chosen = arguments;
  chosen.recipe = answer.report().front.front().recipe;
  const auto pytorch = pytorch_answer(chosen, answer.model, answer.target, answer.budget_bytes);
  return pytorch ? "\nthis recipe in " + pytorch_verdict(*pytorch) + "\n" : "";
}

}  // namespace

int fit_command(std::span<char* const> words) {
  const Arguments arguments = parse_arguments(words, {"json", "gpu=", "examples=", "example-tokens=", "write="});
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug fit MODEL --gpu NAME [--data FILE]");
  FitQuestion question{.model = resolve_model(arguments.recipe.model),
                       .target = target_for(arguments),
                       .recipe = arguments.recipe,
                       .keys_set = arguments.keys_set,
                       .counts = [&](const Plan& plan) { return count_data(arguments, plan); }};
  std::optional<FileInQuestion> file;
  if (arguments.foreign) {
    file.emplace(FileInQuestion{*arguments.foreign, read_recipe_text(arguments.recipe_file), arguments.recipe_file});
    if (const std::vector<std::string> freed = free_keys(question, *file, arguments.keys_of_flags); !freed.empty())
      fmt::print(stderr, "snug: searched, although the file sets them: {}; method, rank, targets and length stay\n",
                 fmt::join(freed, ", "));
  }
  FitAnswer answer = recommend(std::move(question));
  const std::optional<RecipePatch> patch = file ? patch_of(*file, answer) : std::nullopt;
  if (patch) answer.diff = patch->diff;

  std::string text = arguments.has("json") ? fit_json(answer) + "\n" : fit_text(answer, style_of(stdout));
  if (patch && !arguments.has("json")) text += "\nin your file\n" + patch_text(*patch, arguments.foreign->dialect);
  if (!arguments.has("json")) text += beside_pytorch(arguments, answer);
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const std::string& key : arguments.passed_over) fmt::print(stderr, "snug: {} has no effect here\n", key);
  if (!answer.fits()) return 3;
  if (arguments.has("write")) {
    const std::string written = arguments.value("write");
    write_file_atomically(written, fit_recipe_yaml(answer));
    fmt::print(stderr, "wrote {}: snug train {}\n", written, written);
  }
  return 0;
}

}  // namespace snug::cli
