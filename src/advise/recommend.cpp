#include "advise/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "advise/fit_space.h"
#include "advise/levers.h"
#include "advise/pytorch_fit.h"
#include "base/checked.h"
#include "program/compile.h"
#include "recipe/keys.h"

namespace snug {

namespace {

constexpr int64_t kUsualEffectiveBatch = 16;

// What most people would take where they said nothing: 16 sequences a step, half precision.
std::vector<std::string> assume(FitQuestion& question) {
  std::vector<std::string> assumed;
  if (question.file) return assumed;
  if (!question.is_set("per_device_train_batch_size") && !question.is_set("gradient_accumulation_steps")) {
    question.recipe.accumulation = kUsualEffectiveBatch;
    assumed.push_back(fmt::format("{} sequences a step", kUsualEffectiveBatch));
  }
  if (!question.is_set("bf16") && !question.is_set("fp16")) {
    const std::string_view half = usual_half(question.target);
    apply(question.recipe, half, "true");
    assumed.push_back(fmt::format("{} true", half));
  }
  return assumed;
}

struct AskedMethod {
  std::string name;
  std::vector<Setting> settings;
};

std::vector<AskedMethod> methods_asked(const FitQuestion& question) {
  const Recipe& recipe = question.recipe;
  const bool quantized = recipe.quantize.any() || question.model.quantization.has_value();
  std::vector<AskedMethod> adapters = {
      {"LoRA", {{"method", "lora"}, {"load_in_8bit", "false"}, {"load_in_4bit", "false"}}},
      {"LoRA on int8", {{"method", "lora"}, {"load_in_8bit", "true"}, {"load_in_4bit", "false"}}},
      {"QLoRA", {{"method", "lora"}, {"load_in_4bit", "true"}, {"load_in_8bit", "false"}}}};
  const bool bits_are_free =
      question.file && !question.model.quantization && !question.is_set("load_in_4bit") && !question.is_set("load_in_8bit");
  if (bits_are_free && recipe.method == Method::lora && !question.file->method_asked) {
    std::erase_if(adapters, [&](const AskedMethod& asked) { return !question.file->can_say(asked.settings); });
    if (!adapters.empty()) return adapters;
  }
  if (question.is_set("method") || quantized)
    return {{recipe.method == Method::full ? "full" : quantized ? "QLoRA" : "LoRA", {}}};
  std::vector<AskedMethod> all = {{"full", {{"method", "full"}}}};
  all.insert(all.end(), adapters.begin(), adapters.end());
  return all;
}

// `lines`: of a front for PyTorch, at most.
MethodReport search(const FitQuestion& question, const AskedMethod& asked, size_t lines) {
  Recipe recipe = question.recipe;
  std::vector<std::string> fixed = question.keys_set;
  for (const Setting& setting : asked.settings) {
    apply(recipe, setting.key, setting.value);
    fixed.push_back(setting.key);
  }
  if (question.pytorch == nullptr) return {asked.name, fit(question.model, recipe, fixed, question.target)};
  PyTorchSearch limits{.fixed = std::move(fixed), .can_say = {}, .lines = lines};
  if (question.file) limits.can_say = question.file->can_become;
  return {asked.name, fit_in_pytorch(question.model, recipe, limits, *question.pytorch)};
}

// LoRA unless another method was asked for; on fewer bits only where bf16 does not fit.
size_t chosen_method(const std::vector<MethodReport>& methods) {
  for (size_t i = methods.size() > 1 && methods[0].name == "full" ? 1 : 0; i < methods.size(); ++i)
    if (!methods[i].report.front.empty()) return i;
  return methods.size() - 1;
}

// Lengths to try: as asked; else the usual one, or what the longest example needs if that is more, and then the other of the
// two. Packed rows hold the same examples at any length that cuts none, and never compute more than padded ones.
std::vector<int64_t> lengths(const FitQuestion& question, int64_t longest_tokens) {
  constexpr int64_t kMultiple = 64;
  const int64_t usual = sequence_length(question.model, question.recipe);
  if (question.is_set("max_length") || longest_tokens <= 0) return {usual};
  int64_t needed = align_up(longest_tokens, kMultiple);
  if (question.model.max_position > 0) needed = std::min(needed, question.model.max_position);
  if (needed == usual) return {usual};
  return {std::max(usual, needed), std::min(usual, needed)};
}

// Every method at this length.
void search_all(FitQuestion& question, int64_t length, FitAnswer& answer) {
  question.recipe.seq_len = length;
  answer.methods.clear();
  const std::vector<AskedMethod> methods = methods_asked(question);
  for (const AskedMethod& asked : methods) answer.methods.push_back(search(question, asked, 1));
  answer.chosen = chosen_method(answer.methods);
  if (question.pytorch != nullptr && answer.fits())  // its whole front
    answer.methods[answer.chosen] = search(question, methods[answer.chosen], kMostShown);
}

// A shorter length that cuts no example gives up nothing: it goes before fewer bits. One that cuts some is for where nothing
// fits.
void search_lengths(FitQuestion& question, const std::optional<CountedData>& data, FitAnswer& answer) {
  const int64_t longest = data ? data->longest_tokens : 0;
  const std::vector<int64_t> tried = lengths(question, longest);
  search_all(question, tried[0], answer);
  int64_t length = tried[0];
  if (const bool first_choice = answer.fits() && answer.chosen <= 1; tried.size() > 1 && !first_choice) {
    FitAnswer shorter = answer;
    search_all(question, tried[1], shorter);
    const bool frees_bits = shorter.fits() && tried[1] >= longest && shorter.chosen < answer.chosen;
    if (!answer.fits() || frees_bits) {
      answer = std::move(shorter);
      length = tried[1];
    }
  }
  question.recipe.seq_len = length;
  if (question.is_set("max_length")) return;
  answer.assumed.push_back(fmt::format("max_length {}", length));
  if (longest > length)
    answer.assumed.back() += fmt::format(" (the longest example has {} token{})", longest, longest == 1 ? "" : "s");
}

// What would fit if more were given up: planned, so it does; or, if nothing would, what needs least.
std::optional<WayOut> way_out(const FitAnswer& answer, const Recipe& asked, PyTorchEngine* pytorch) {
  if (answer.fits() || !answer.report().least || !answer.model.unmodelled_step.empty()) return std::nullopt;
  const Plan plan = make_plan(answer.model, answer.report().least->recipe, answer.target);
  std::optional<LeverSet> closest;
  const auto found =
      pytorch != nullptr ? smallest_set_that_fits(plan, *pytorch, closest) : smallest_set_that_fits(plan, closest);
  const std::optional<LeverSet>& set = found ? found : closest;
  if (!set) return std::nullopt;
  WayOut out{.fits = found.has_value(), .settings = differences(asked, set->recipe), .peak_bytes = set->peak_bytes};
  for (const Alternative& change : set->changes) out.given_up.push_back(change.note);
  return out;
}

// What PyTorch takes of the best recipe, or of what needs least and where that would fit.
PyTorchFit in_pytorch(const FitAnswer& answer, PyTorchEngine& engine) {
  PyTorchFit found{.trainer = engine.side().trainer, .margin_bytes = engine.margin_bytes(), .plan = {}, .smallest_card = {}};
  const std::optional<FitChoice>& least = answer.report().least;
  const Recipe* recipe = answer.fits() ? &answer.report().front.front().recipe : least ? &least->recipe : nullptr;
  if (recipe == nullptr) return found;
  if (const eager::Plan* plan = engine.follow(*recipe)) found.plan = *plan;
  if (answer.fits()) return found;
  if (const Accelerator* card = engine.smallest_card(*recipe)) {
    found.smallest_card = card->name;
    found.smallest_card_bytes = card->usable_bytes;
  }
  return found;
}

}  // namespace

std::string_view usual_half(const Target& target) { return target.multiplies_bf16 ? "bf16" : "fp16"; }

bool FitQuestion::is_set(std::string_view key) const {
  return std::find(keys_set.begin(), keys_set.end(), key) != keys_set.end();
}

FitAnswer recommend(FitQuestion question) {
  FitAnswer answer{.model = question.model, .target = question.target, .assumed = assume(question)};
  const Recipe& recipe = question.recipe;
  validate(recipe);
  answer.budget_bytes = recipe.memory_bytes > 0 ? recipe.memory_bytes : answer.target.memory_bytes;
  const auto count = [&]() -> std::optional<CountedData> {
    if (!question.counts) return std::nullopt;
    return question.counts(make_plan(answer.model, recipe, answer.target));
  };
  const int64_t counted_at = sequence_length(answer.model, recipe);
  std::optional<CountedData> data = count();
  const auto begin = std::chrono::steady_clock::now();
  search_lengths(question, data, answer);
  answer.way_out = way_out(answer, recipe, question.pytorch);
  if (question.pytorch != nullptr) answer.pytorch = in_pytorch(answer, *question.pytorch);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (data && recipe.seq_len != counted_at) data = count();
  if (!data) return answer;
  answer.data = std::move(data->description);
  answer.workload = data->workload;
  return answer;
}

RunCost run_cost(const FitAnswer& answer, const FitChoice& choice) {
  const std::optional<double> seconds = answer.pytorch ? std::optional(choice.step_seconds) : std::nullopt;
  if (answer.model.unmodelled_step.empty())
    return run_cost(make_plan(answer.model, choice.recipe, answer.target), answer.workload, seconds);
  const Recipe& recipe = choice.recipe;
  const StepFacts step{.rows = checked_mul(checked_mul(recipe.batch, recipe.accumulation), recipe.parallel.ranks),
                       .seq_len = sequence_length(answer.model, recipe),
                       .ranks = recipe.parallel.ranks,
                       .flops = products_with_weights(answer.model, recipe),
                       .seconds = answer.target.cost.known() ? seconds : std::nullopt};
  return run_cost(recipe, step, answer.workload, answer.target.dollars_per_hour);
}

}  // namespace snug
