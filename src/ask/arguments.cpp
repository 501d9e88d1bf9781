#include "ask/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "ask/given_adapter.h"
#include "ask/pytorch_ranks.h"
#include "base/error.h"
#include "model/catalogue.h"
#include "model/hub_cache.h"
#include "model/parameters.h"
#include "recipe/dialects/earlier_stage.h"
#include "recipe/keys.h"
#include "recipe/yaml.h"

namespace snug {

namespace {

bool ends_in(const std::string& word, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view end) { return word.ends_with(end); });
}

// A .json may be a model's config.json, or the arguments that a trainer has left.
bool is_recipe(const std::string& word) {
  if (ends_in(word, {".yaml", ".yml", ".sh", ".bash", ".sbatch", ".slurm", ".py", ".ipynb"})) return true;
  if (!ends_in(word, {".json"}) || std::filesystem::path(word).filename() == "config.json") return false;
  try {
    const dialects::Document document = dialects::read_document(read_recipe_text(word), word);
    return recognise(document) || read_in_own_words(document) ||
           (!what_else(document).empty() && !document.has("hidden_size"));
  } catch (const Error&) {
    return false;
  }
}

// Takes the recipe among the positionals; returns the model.
std::string read_positionals(Arguments& result) {
  std::string model;
  for (const std::string& word : result.positional) {
    const bool recipe = is_recipe(word);
    std::string& taken = recipe ? result.recipe_file : model;
    if (!taken.empty())
      throw UsageError(fmt::format("one {} at a time: '{}' is too much", recipe ? "recipe" : "model", word));
    taken = word;
  }
  return model;
}

// A copy in fewer bits, below an adapter: GPTQ's is PyTorch's own; what has no model here is planned in the nearest form.
// What to say of it, "" if it is not taken.
std::string take_for_its_copy(const QuantizedCopy& copy, Arguments& result) {
  Recipe& recipe = result.recipe;
  const bool in_bits = copy.form != "FP8" && copy.form != "GGUF";
  if (in_bits && recipe.method == Method::full) return {};  // cannot be trained
  const std::string taken = fmt::format("'{}' is taken for {}, by its name", recipe.model, copy.base);
  recipe.model = copy.base;
  if (!in_bits) return fmt::format("{}; its {} weights are planned in 16 bits", taken, copy.form);
  recipe.quantize.in_4bit = true;
  recipe.quantize.in_8bit = false;
  result.keys_set.emplace_back("load_in_4bit");
  if (copy.form != "GPTQ") return fmt::format("{}; its {} weights are planned as NF4", taken, copy.form);
  if (!result.has("gptq")) result.flags.push_back({"gptq", "128"});
  return taken + ", with GPTQ's 4-bit weights in groups of 128 on PyTorch (--gptq), and NF4 in their place in snug's engine";
}

// A run that goes on from a directory of somebody's is planned as the model whose tokenizer it has. What to say of it, "" if
// it is not.
std::string take_by_its_tokenizer(Arguments& result) {
  std::string& model = result.recipe.model;
  const bool path =
      model.starts_with('/') || model.starts_with('.') || model.starts_with('~') || std::ranges::count(model, '/') > 1;
  if (!path || !result.foreign || result.foreign->tokenizer.empty()) return {};
  const std::string& tokenizer = result.foreign->tokenizer;
  const std::string base = find_model(tokenizer) ? tokenizer : model_within(tokenizer);
  if (base.empty()) return {};
  const std::string given = std::exchange(model, base);
  return fmt::format("'{}' is taken for {}, whose tokenizer it has", given, base);
}

// What an earlier stage of the same project leaves is planned as the model that this began with. What to say of it, "" if
// none is found.
std::string take_from_its_stage(Arguments& result) {
  constexpr int kMostStages = 4;
  std::string model = result.recipe.model, said;
  for (int stage = 0; stage < kMostStages; ++stage) {
    const auto made = dialects::stage_that_writes(result.recipe_file, model);
    if (!made) return {};
    said += fmt::format("{}'{}' is made by {}", said.empty() ? "" : ", ", model, made->file);
    model = made->model;
    const std::string base = find_model(model) ? model : model_within(model);
    if (base.empty()) continue;
    result.recipe.model = base;
    return fmt::format("{} from {}: planned as that", said, model);
  }
  return {};
}

// A model of somebody's own is planned as the one that its name tells of. What to say of it, "" if it is not.
std::string take_for_its_base(Arguments& result) {
  std::string& model = result.recipe.model;
  if (model.empty() || std::filesystem::exists(model) || find_model(model) || cached_snapshot(model)) return {};
  if (const auto copy = quantized_copy(model)) return take_for_its_copy(*copy, result);
  const std::string base = model_within(model);
  if (base.empty())
    if (std::string said = take_from_its_stage(result); !said.empty()) return said;
  if (base.empty()) return take_by_its_tokenizer(result);
  const std::string given = std::exchange(model, base);
  return fmt::format("'{}' is taken for {}, by its name; words that were added to its vocabulary are not planned", given,
                     base);
}

// True if the file is another trainer's recipe. What is no recipe of theirs is left to our own reader and its messages.
bool take_foreign(Arguments& result) {
  const bool script = ends_in(result.recipe_file, {".sh", ".bash", ".sbatch", ".slurm", ".py", ".ipynb"});
  const std::string text = read_recipe_text(result.recipe_file);
  dialects::Document document;
  try {
    document = dialects::read_document(text, result.recipe_file);
  } catch (const Error&) {
    if (script) throw;
  }
  result.foreign = read_foreign_recipe(document);
  if (!result.foreign) {
    if (const std::string what = what_else(document); !what.empty())
      throw Error("this is no recipe of a language model: it is " + what, result.recipe_file,
                  "give the file that holds the trainer's own keys");
    if (script) throw Error("what this script starts is no trainer that snug knows", result.recipe_file);
    return false;
  }
  result.recipe = result.foreign->recipe;
  result.keys_set = result.foreign->keys_set;
  for (const std::string& name : result.foreign->models) {
    if (!std::filesystem::exists(name) && !find_model(name)) continue;
    result.recipe.model = name;
    break;
  }
  // Rows are counted and trained on only where file and tokenizer are at hand; --data says otherwise.
  if (!std::filesystem::exists(result.recipe.data) || !std::filesystem::exists(result.recipe.model))
    result.recipe.data.clear();
  return true;
}

void set_key(const Flag& flag, Arguments& result) {
  if (apply(result.recipe, flag.name, flag.value, "--" + flag.name) == Applied::passed_over)
    result.passed_over.push_back(flag.name);
  const Key* key = find_key(flag.name);
  if (!key) return;
  result.keys_set.emplace_back(key->name);
  result.keys_of_flags.emplace_back(key->name);
}

// Removes what `is_absent` of a list of modules; the names, with commas.
std::string take_out(std::vector<std::string>& modules, const auto& is_absent) {
  std::vector<std::string> absent;
  std::ranges::copy_if(modules, std::back_inserter(absent), is_absent);
  std::erase_if(modules, is_absent);
  return fmt::format("{}", fmt::join(absent, ", "));
}

// PEFT adapts the targets that a model has and passes over the others, as long as there is one; what it has not it cannot
// train whole beside them either.
void pass_over_absent_modules(Arguments& result) {
  Lora& lora = result.recipe.lora;
  const auto spec = find_model(result.recipe.model);
  if (!spec) return;
  std::vector<std::string>& notes = result.foreign->notes;
  std::set<std::string, std::less<>> modules = {"lm_head"};
  for (const Parameter& parameter : parameters_of(*spec))  // experts in one tensor are no module
    if (parameter.kind != ParameterKind::expert || !spec->experts.fused) modules.insert(parameter.module);
  const auto is_absent = [&](const std::string& name) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) return !modules.contains(name);
    return name.starts_with("self.");  // no path has such a part
  };
  // The head of a classifier, which its task brings.
  const auto is_classifiers = [](const std::string& name) { return name == "score" || name == "classifier"; };
  if (const std::string heads = take_out(lora.modules_to_save, is_classifiers); !heads.empty())
    notes.push_back(fmt::format("modules_to_save: {} is a classifier's head: its few weights are not planned", heads));
  if (const std::string absent = take_out(lora.modules_to_save, is_absent); !absent.empty())
    notes.push_back(fmt::format("modules_to_save: {} has no {}, which PEFT passes over", spec->name, absent));
  if (lora.target_modules.empty() || lora.target_modules.front() == "all-linear") return;
  const std::string absent = take_out(lora.target_modules, is_absent);
  if (absent.empty()) return;
  const bool all = lora.target_modules.empty();  // as an author's own code of the model calls them
  if (all) lora.target_modules = {"all-linear"};
  notes.push_back(fmt::format("lora_target_modules: {} has no {}{}", spec->name, absent,
                              all ? ": all linear layers are taken" : ", which PEFT passes over"));
}

// Another trainer's recipe is told of; what it leaves open must be said beside it.
void check_foreign(Arguments& result, Asker& asker) {
  if (result.recipe.method == Method::lora) pass_over_absent_modules(result);
  assume_gpus(result);
  const ForeignRecipe& foreign = *result.foreign;
  const std::string &file = result.recipe_file, &model = result.recipe.model;
  ForeignRecipe told = foreign;
  if (result.has("gpu")) std::erase_if(told.keys, is_about_ranks);  // the answer for PyTorch is of them
  asker.tell(fmt::format("snug: {}: {}\n", file, describe(told)));
  for (const std::string& note : foreign.notes) asker.tell(fmt::format("snug: {}\n", note));
  if (!foreign.keys_in.empty() && model.empty())
    throw Error(fmt::format("the script's keys are in {}", foreign.keys_in), file, "give that file");
  if (model.empty()) throw UsageError(file + " does not say which model: give it beside the file");
  if (std::filesystem::exists(model) || find_model(model)) return;
  try {
    resolve_model(model);
  } catch (const Error& error) {
    throw Error("its model: " + error.problem(), file,
                "give the model's own config.json, or a model like it, beside the recipe");
  }
}

}  // namespace

Takes takes_of_key(const std::string& name) {
  if (const Key* key = find_key(name)) {
    if (key->type == KeyType::boolean) return Takes::truth;
    return key->name == "resume_from_checkpoint" ? Takes::anything : Takes::value;  // the directory may be left to choose
  }
  try {
    Recipe unused;
    apply(unused, name, "true", "--" + name);
  } catch (const Error& error) {
    if (error.problem().starts_with("there is no key")) throw UsageError(error.what());
  }
  return Takes::anything;  // another trainer's: --load-in-4bit asks for something
}

// The file first, whatever its place: flags change what it says.
Arguments read_arguments(Options options, Asker& asker, ModelNames names) {
  Arguments result{std::move(options)};
  const std::string model = read_positionals(result);
  if (!result.recipe_file.empty() && !take_foreign(result)) {
    RecipeFile file = read_recipe_yaml(result.recipe_file);
    result.recipe = std::move(file.recipe);
    result.keys_set = std::move(file.keys_set);
    result.passed_over = std::move(file.passed_over);
  }
  for (const Flag& flag : result.others) set_key(flag, result);
  if (!model.empty()) result.recipe.model = model;
  if (names == ModelNames::tell_of_their_base) {
    const std::string said = take_for_its_base(result);
    if (result.foreign && !said.empty()) result.foreign->notes.push_back("its model " + said);
    if (!result.foreign && !said.empty()) asker.tell(fmt::format("snug: {}\n", said));
  }
  if (result.foreign) check_foreign(result, asker);
  take_given_adapter(result);
  return result;
}

Arguments parse_arguments(std::span<char* const> words, const std::vector<std::string>& own, Asker& asker,
                          ModelNames names) {
  return read_arguments(parse_options(words, own, takes_of_key), asker, names);
}

}  // namespace snug
