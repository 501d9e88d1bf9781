// snug fit: what should I change? The best recipe for the memory at hand.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "advise/levers.h"
#include "base/checked.h"
#include "base/error.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/count_data.h"
#include "cli/fit_report.h"
#include "cli/target_flags.h"
#include "cli/terminal.h"
#include "cli/units.h"
#include "formats/file.h"
#include "model/catalogue.h"
#include "program/compile.h"
#include "recipe/bytes.h"
#include "recipe/dialects/changes.h"
#include "recipe/keys.h"
#include "recipe/yaml.h"

namespace snug::cli {

namespace {

constexpr int64_t kUsualEffectiveBatch = 16;

bool is_set(const Arguments& arguments, std::string_view key) {
  return std::find(arguments.keys_set.begin(), arguments.keys_set.end(), key) != arguments.keys_set.end();
}

// What most people would take where they said nothing: 16 sequences a step, half precision.
std::vector<std::string> assume(Arguments& arguments, const Target& target) {
  std::vector<std::string> assumed;
  const auto take = [&](std::string_view key, const std::string& value) {
    apply(arguments.recipe, key, value);
    assumed.push_back(std::string(key) + " " + value);
  };
  if (!arguments.foreign && !is_set(arguments, "per_device_train_batch_size") &&
      !is_set(arguments, "gradient_accumulation_steps")) {
    arguments.recipe.accumulation = kUsualEffectiveBatch;
    assumed.push_back(fmt::format("{} sequences a step", kUsualEffectiveBatch));
  }
  if (!arguments.foreign && !is_set(arguments, "bf16") && !is_set(arguments, "fp16"))
    take(target.multiplies_bf16 ? "bf16" : "fp16", "true");
  return assumed;
}

// Whether the trainer's own words can say these changes of the file.
bool can_be_said(const Arguments& arguments, const std::vector<RecipeChange>& changes) {
  return change_foreign_recipe(read_recipe_text(arguments.recipe_file), arguments.recipe_file, changes).unsaid.empty();
}

// One other value of a key that is searched, to see whether there are words for it.
RecipeChange another_value(const Recipe& recipe, std::string_view key) {
  if (key == "optim") return {"optim", recipe.optim == Optimizer::adamw_8bit ? "adamw_torch" : "adamw_8bit"};
  return {"gradient_checkpointing", recipe.gradient_checkpointing ? "false" : "true"};
}

// Of another trainer's recipe what saves memory is searched although the file sets it, unless a flag says the same; what is
// trained, and on rows of what length, stays. Returns the keys that the file sets and the search may change.
std::vector<std::string> free_keys(Arguments& arguments) {
  constexpr std::string_view kSearched[] = {"per_device_train_batch_size",
                                            "gradient_accumulation_steps",
                                            "gradient_checkpointing",
                                            "optim",
                                            "load_in_4bit",
                                            "load_in_8bit",
                                            "prepare_model_for_kbit_training"};
  std::vector<std::string> freed;
  std::vector<std::string>& keys = arguments.keys_set;
  const auto by_flag = [&](std::string_view key) {
    return std::find(arguments.keys_of_flags.begin(), arguments.keys_of_flags.end(), key) != arguments.keys_of_flags.end();
  };
  for (const std::string_view key : kSearched) {
    if (by_flag(key) || !is_set(arguments, key)) continue;
    freed.emplace_back(key);
    std::erase(keys, key);
  }
  for (const char* key : {"optim", "gradient_checkpointing"}) {
    if (by_flag(key) || can_be_said(arguments, {another_value(arguments.recipe, key)})) continue;
    std::erase(freed, key);
    keys.emplace_back(key);
  }
  for (const char* key : {"method", "lora_r", "lora_target_modules", "checkpoint_layers"})  // they know no single blocks
    if (!is_set(arguments, key)) keys.emplace_back(key);
  if (arguments.recipe.seq_len > 0 && !is_set(arguments, "max_length")) keys.emplace_back("max_length");
  return freed;
}

struct Asked {
  std::string name;
  std::vector<Setting> settings;
};

bool asks_method(const Arguments& arguments) {
  const std::vector<std::string>& flags = arguments.keys_of_flags;
  return std::find(flags.begin(), flags.end(), "method") != flags.end();
}

std::vector<Asked> methods_asked(const Arguments& arguments, const ModelSpec& model) {
  const bool quantized = arguments.recipe.quantize.any() || model.quantization.has_value();
  std::vector<Asked> adapters = {{"LoRA", {{"method", "lora"}, {"load_in_8bit", "false"}, {"load_in_4bit", "false"}}},
                                 {"LoRA on int8", {{"method", "lora"}, {"load_in_8bit", "true"}, {"load_in_4bit", "false"}}},
                                 {"QLoRA", {{"method", "lora"}, {"load_in_4bit", "true"}, {"load_in_8bit", "false"}}}};
  const bool bits_are_free =
      arguments.foreign && !model.quantization && !is_set(arguments, "load_in_4bit") && !is_set(arguments, "load_in_8bit");
  if (bits_are_free && arguments.recipe.method == Method::lora && !asks_method(arguments)) {
    std::erase_if(adapters, [&](const Asked& asked) {
      std::vector<RecipeChange> changes;
      for (const Setting& setting : asked.settings) changes.push_back({setting.key, setting.value});
      return !can_be_said(arguments, changes);
    });
    if (!adapters.empty()) return adapters;
  }
  if (is_set(arguments, "method") || quantized)
    return {{arguments.recipe.method == Method::full ? "full" : quantized ? "QLoRA" : "LoRA", {}}};
  std::vector<Asked> all = {{"full", {{"method", "full"}}}};
  all.insert(all.end(), adapters.begin(), adapters.end());
  return all;
}

MethodReport search(const Arguments& arguments, const Asked& asked, const FitAnswer& answer) {
  Recipe recipe = arguments.recipe;
  std::vector<std::string> fixed = arguments.keys_set;
  for (const Setting& setting : asked.settings) {
    apply(recipe, setting.key, setting.value);
    fixed.push_back(setting.key);
  }
  return {asked.name, fit(answer.model, recipe, fixed, answer.target)};
}

// LoRA unless another method was asked for; on fewer bits only where bf16 does not fit.
size_t chosen_method(const std::vector<MethodReport>& methods) {
  for (size_t i = methods.size() > 1 && methods[0].name == "full" ? 1 : 0; i < methods.size(); ++i)
    if (!methods[i].report.front.empty()) return i;
  return methods.size() - 1;
}

// Lengths to try: as asked; else the usual one, or what the longest example needs if that is more, and then the other of the
// two. Packed rows hold the same examples at any length that cuts none, and never compute more than padded ones.
std::vector<int64_t> lengths(const Arguments& arguments, const ModelSpec& model, int64_t longest_tokens) {
  constexpr int64_t kMultiple = 64;
  const int64_t usual = sequence_length(model, arguments.recipe);
  if (is_set(arguments, "max_length") || longest_tokens <= 0) return {usual};
  int64_t needed = align_up(longest_tokens, kMultiple);
  if (model.max_position > 0) needed = std::min(needed, model.max_position);
  if (needed == usual) return {usual};
  return {std::max(usual, needed), std::min(usual, needed)};
}

// Every method at this length.
void search_all(Arguments& arguments, int64_t length, FitAnswer& answer) {
  arguments.recipe.seq_len = length;
  answer.methods.clear();
  for (const Asked& asked : methods_asked(arguments, answer.model))
    answer.methods.push_back(search(arguments, asked, answer));
  answer.chosen = chosen_method(answer.methods);
}

// A shorter length that cuts no example gives up nothing: it goes before fewer bits. One that cuts some is for where nothing
// fits.
void search_lengths(Arguments& arguments, const std::optional<CountedData>& data, FitAnswer& answer) {
  const int64_t longest = data ? data->longest_tokens : 0;
  const std::vector<int64_t> tried = lengths(arguments, answer.model, longest);
  search_all(arguments, tried[0], answer);
  int64_t length = tried[0];
  if (const bool first_choice = answer.fits() && answer.chosen <= 1; tried.size() > 1 && !first_choice) {
    FitAnswer shorter = answer;
    search_all(arguments, tried[1], shorter);
    const bool frees_bits = shorter.fits() && tried[1] >= longest && shorter.chosen < answer.chosen;
    if (!answer.fits() || frees_bits) {
      answer = std::move(shorter);
      length = tried[1];
    }
  }
  arguments.recipe.seq_len = length;
  if (is_set(arguments, "max_length")) return;
  answer.assumed.push_back(fmt::format("max_length {}", length));
  if (longest > length) answer.assumed.back() += fmt::format(" (the longest example has {})", counted(longest, "token"));
}

// The best recipe as a change of the user's own file; nothing for a recipe of ours.
std::optional<RecipePatch> patch_of(const Arguments& arguments, const FitAnswer& answer) {
  if (!arguments.foreign || !answer.fits()) return std::nullopt;
  Recipe best = answer.report().front.front().recipe;
  best.memory_bytes = arguments.foreign->recipe.memory_bytes;
  best.model = arguments.foreign->recipe.model;
  std::vector<RecipeChange> changes;
  for (const Setting& setting : differences(arguments.foreign->recipe, best)) {
    const bool of_run = setting.key == "data" || setting.key == "eval_data" || setting.key == "threads";
    if (!of_run) changes.push_back({setting.key, setting.value});
  }
  return change_foreign_recipe(read_recipe_text(arguments.recipe_file), arguments.recipe_file, changes);
}

std::string patch_text(const RecipePatch& patch, Dialect dialect) {
  std::string text;
  for (const RecipeChange& change : patch.unsaid)
    text += fmt::format("{} has no word for {}: {}\n", name_of(dialect), change.key, change.value);
  return text + (patch.diff.empty() ? "the file stays as it is\n" : patch.diff);
}

// The keys that differ from their defaults, as a file that `snug train` runs.
std::string recipe_yaml(const FitAnswer& answer, const Recipe& recipe) {
  const std::string all = write_recipe_yaml(recipe), usual = write_recipe_yaml({});
  std::string text =
      fmt::format("# chosen by snug fit for {} of {}\n", format_bytes(answer.budget_bytes), answer.target.name);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\n', begin) + 1;
    const std::string line = all.substr(begin, end - begin);
    if (usual.find("\n" + line) == std::string::npos && !usual.starts_with(line)) text += line;
    begin = end;
  }
  return text;
}

// What would fit if more were given up: planned, so it does; or, if nothing would, what needs least.
std::optional<WayOut> way_out(const FitAnswer& answer, const Recipe& asked) {
  if (answer.fits() || !answer.report().least) return std::nullopt;
  const Plan plan = make_plan(answer.model, answer.report().least->recipe, answer.target);
  std::optional<LeverSet> closest;
  const auto found = smallest_set_that_fits(plan, closest);
  const std::optional<LeverSet>& set = found ? found : closest;
  if (!set) return std::nullopt;
  WayOut out{.fits = found.has_value(), .settings = differences(asked, set->recipe), .peak_bytes = set->peak_bytes};
  for (const Alternative& change : set->changes) out.given_up.push_back(change.note);
  return out;
}

}  // namespace

int fit_command(std::span<char* const> words) {
  Arguments arguments = parse_arguments(words, {"json", "gpu=", "examples=", "example-tokens=", "write="});
  if (arguments.recipe.model.empty()) throw UsageError("which model? snug fit MODEL --gpu NAME [--data FILE]");
  FitAnswer answer{.model = resolve_model(arguments.recipe.model), .target = target_for(arguments)};
  if (arguments.foreign)
    if (const std::vector<std::string> freed = free_keys(arguments); !freed.empty())
      fmt::print(stderr, "snug: searched, although the file sets them: {}; method, rank, targets and length stay\n",
                 fmt::join(freed, ", "));
  answer.assumed = assume(arguments, answer.target);
  validate(arguments.recipe);
  answer.budget_bytes = arguments.recipe.memory_bytes > 0 ? arguments.recipe.memory_bytes : answer.target.memory_bytes;
  const int64_t counted_at = sequence_length(answer.model, arguments.recipe);
  std::optional<CountedData> data = count_data(arguments, make_plan(answer.model, arguments.recipe, answer.target));
  const auto begin = std::chrono::steady_clock::now();
  search_lengths(arguments, data, answer);
  answer.way_out = way_out(answer, arguments.recipe);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (data && arguments.recipe.seq_len != counted_at)
    data = count_data(arguments, make_plan(answer.model, arguments.recipe, answer.target));
  if (data) {
    answer.data = std::move(data->description);
    answer.workload = data->workload;
  }

  const std::optional<RecipePatch> patch = patch_of(arguments, answer);
  if (patch) answer.diff = patch->diff;
  std::string text = arguments.has("json") ? fit_json(answer) + "\n" : fit_text(answer, style_of(stdout));
  if (patch && !arguments.has("json")) text += "\nin your file\n" + patch_text(*patch, arguments.foreign->dialect);
  std::fwrite(text.data(), 1, text.size(), stdout);
  for (const std::string& key : arguments.passed_over) fmt::print(stderr, "snug: {} has no effect here\n", key);
  if (!answer.fits()) return 3;
  if (arguments.has("write")) {
    write_file_atomically(arguments.flags.at("write"), recipe_yaml(answer, answer.report().front.front().recipe));
    fmt::print(stderr, "wrote {}: snug train {}\n", arguments.flags.at("write"), arguments.flags.at("write"));
  }
  return 0;
}

}  // namespace snug::cli
