// snug fit: what should I change? The best recipe for the memory at hand, of the engine that the question is about.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "advise/foreign_fit.h"
#include "advise/mesh_search.h"
#include "advise/recommend.h"
#include "ask/answers.h"
#include "ask/arguments.h"
#include "ask/count_data.h"
#include "ask/pytorch_answer.h"
#include "ask/pytorch_ranks.h"
#include "ask/pytorch_setup.h"
#include "ask/target_flags.h"
#include "formats/file.h"
#include "model/catalogue.h"
#include "model/families.h"
#include "recipe/yaml.h"
#include "report/fit_report.h"
#include "report/mesh_report.h"

namespace snug {

namespace {

Arguments fit_arguments(std::span<char* const> words, Asker& asker) {
  Arguments arguments = parse_arguments(words, fit_flags(), asker, ModelNames::tell_of_their_base);
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug fit MODEL --gpu NAME [--data FILE]");
  return arguments;
}

// A question of another trainer's file: what may be searched although the file sets it.
void free_keys_of(const FileInQuestion& file, const Arguments& arguments, FitQuestion& question, Asker& asker) {
  if (const std::vector<std::string> freed = free_keys(question, file, arguments.keys_of_flags); !freed.empty())
    asker.tell(fmt::format("snug: searched, although the file sets them: {}; method, rank, targets and length stay\n",
                           fmt::join(freed, ", ")));
}

// What PyTorch takes of the answer's recipe, with what was assumed of it.
PyTorchAnswer figures_of(const FitAnswer& answer, const PyTorchEngine& engine, PyTorchAnswer figures) {
  const std::optional<FitChoice>& least = answer.report().least;
  figures.plan = answer.pytorch->plan;
  if (!figures.plan) return figures;
  figures.plan->fits = answer.fits();
  figures.setup = engine.side().setup(answer.fits() ? answer.report().front.front().recipe : least->recipe);
  if (answer.fits() && answer.target.cost.known()) figures.step_seconds = answer.report().front.front().step_seconds;
  return figures;
}

// Why the search is of snug's engine although PyTorch was asked about.
std::string why_snug(const PyTorchAnswer& pytorch) {
  if (!pytorch.plan) return pytorch_verdict(pytorch);
  return pytorch.trainer + ": no card is named (--gpu NAME or --memory SIZE)";
}

void write_recipe(const std::string& written, const FitAnswer& answer, const std::optional<RecipePatch>& patch,
                  Asker& asker) {
  const bool theirs = answer.pytorch && patch;
  write_file_atomically(written, theirs ? patch->text : fit_recipe_yaml(answer));
  asker.tell(fmt::format("wrote {}{}\n", written, answer.pytorch ? "" : ": snug train " + written));
}

}  // namespace

std::vector<std::string> fit_flags() {
  std::vector<std::string> flags = pytorch_flags();
  flags.insert(flags.begin(), {"json", "gpu=", "gpus-per-node=", "examples=", "example-tokens=", "write="});
  return flags;
}

// How the asked number of GPUs should share the run.
int fit_meshes(const Arguments& arguments, Asker& asker) {
  const ModelSpec model = resolve_model(arguments.recipe.model);
  const Target target = target_for(arguments);
  Recipe recipe = arguments.recipe;
  recipe.parallel.ranks = std::max(recipe.parallel.ranks, gpus_asked(arguments));
  if (!sets(arguments, "bf16") && !sets(arguments, "fp16")) apply(recipe, usual_half(target), "true");
  const MeshAnswer answer = search_meshes(model, recipe, target, arguments.keys_set);
  const int64_t budget = budget_of(recipe, target);
  asker.print(arguments.has("json") ? mesh_json(model, target, budget, answer) + "\n"
                                    : mesh_text(model, target, budget, answer));
  if (arguments.has("write") && !answer.fastest.empty()) {
    const std::string written = arguments.value("write");
    write_file_atomically(written, fit_recipe_yaml(answer.fastest.front().recipe, target, budget));
    asker.tell(fmt::format("wrote {}\n", written));
  }
  return answer.fastest.empty() ? 3 : 0;
}

int answer_fit(std::span<char* const> words, Asker& asker) {
  const Arguments arguments = fit_arguments(words, asker);
  if (arguments.has("gpus-per-node")) return fit_meshes(arguments, asker);
  FitQuestion question{.model = resolve_model(arguments.recipe.model),
                       .target = target_for(arguments),
                       .recipe = arguments.recipe,
                       .keys_set = arguments.keys_set,
                       .counts = [&](const Plan& plan) { return count_data(arguments, plan, asker); }};
  const ModelSpec model = question.model;
  const bool modelled = model.unmodelled_step.empty();  // else PyTorch's side alone may know it
  if (!modelled) {
    if (arguments.has("examples") || !arguments.recipe.data.empty())
      asker.tell("snug: the data is not counted: of this model snug's own engine has no step\n");
    question.counts = {};
  }
  const Target target = question.target;
  const int64_t budget = arguments.recipe.memory_bytes > 0 ? arguments.recipe.memory_bytes : target.memory_bytes;
  std::optional<FileInQuestion> file;
  if (arguments.foreign)
    file.emplace(FileInQuestion{*arguments.foreign, read_recipe_text(arguments.recipe_file), arguments.recipe_file});
  if (file) free_keys_of(*file, arguments, question, asker);

  const std::optional<PyTorchAnswer> pytorch = pytorch_answer(arguments, model, target, budget);
  std::optional<PyTorchEngine> engine;
  if (pytorch)
    if (auto side = pytorch_side(arguments, model, *pytorch, budget)) engine.emplace(model, target, std::move(*side));
  if (!engine) refuse_unmodelled(model);
  if (pytorch && !engine) asker.tell(fmt::format("snug: {}; what follows is of snug's own engine\n", why_snug(*pytorch)));

  const bool json = arguments.has("json");
  std::optional<FitAnswer> of_snug;
  if (modelled && (json || !engine)) of_snug = recommend(question);
  question.pytorch = engine ? &*engine : nullptr;
  FitAnswer answer = engine ? recommend(std::move(question)) : *of_snug;
  const std::optional<RecipePatch> patch = file ? patch_of(*file, answer) : std::nullopt;
  if (patch) answer.diff = patch->diff;

  std::string text;
  if (json) {
    text = (engine ? fit_json(of_snug, answer, figures_of(answer, *engine, *pytorch)) : fit_json(answer, pytorch)) + "\n";
  } else {
    text = fit_text(answer, asker.style());
    if (engine) text += pytorch_text(figures_of(answer, *engine, *pytorch), asker.style());
    if (patch) text += "\nin your file\n" + patch_text(*patch, arguments.foreign->dialect);
  }
  asker.print(text);
  for (const std::string& key : arguments.passed_over) asker.tell(fmt::format("snug: {} has no effect here\n", key));
  if (!answer.fits()) return 3;
  if (arguments.has("write")) write_recipe(arguments.value("write"), answer, patch, asker);
  return 0;
}

}  // namespace snug
