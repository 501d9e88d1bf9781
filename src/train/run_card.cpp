#include "train/run_card.h"

#include <algorithm>
#include <filesystem>

#include "base/version.h"
#include "data/row_source.h"
#include "formats/model_card.h"
#include "recipe/keys.h"
#include "run/process_memory.h"
#include "train/run_state.h"

namespace snug {

namespace {

// Where things lie and how a run was started says nothing of its result.
bool is_of_this_machine(std::string_view key) {
  constexpr std::string_view kKeys[] = {
      "model_name_or_path",   "data",         "eval_data", "output_dir", "logging_dir", "threads", "resume_from_checkpoint",
      "overwrite_output_dir", "chat_template"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

// Without the directories that they lie in.
std::string data_names(const Recipe& recipe) {
  std::string text;
  for (const std::string& name : named_data(recipe.data))
    text += (text.empty() ? "" : ", ") + std::filesystem::path(name).filename().string();
  return text;
}

}  // namespace

std::string run_card(const Plan& plan, const DatasetSummary& data, std::span<const EvaluationMetrics> evaluations,
                     int64_t step, double mean_loss) {
  const Recipe& recipe = plan.recipe;
  TrainingCard card{.version = kVersion,
                    .base_model = recipe.model,
                    .adapter = recipe.method == Method::lora,
                    .directory = recipe.output_dir,
                    .data = data_names(recipe),
                    .rows = data.source_rows,
                    .tokens = data.tokens,
                    .sequences = data.rows,
                    .seq_len = data.seq_len,
                    .trainable_parameters = plan.program.trainable_parameters(),
                    .total_parameters = total_parameters(plan.model),
                    .steps = step,
                    .train_loss = mean_loss,
                    .planned_peak_bytes = plan.peak_bytes,
                    .measured_peak_bytes = process_memory().peak_bytes};
  for (const EvaluationMetrics& e : evaluations) card.evaluations.push_back({e.step, e.loss, e.token_accuracy, e.exact});
  for (const Key& key : recipe_keys())
    if (key.get && !is_of_this_machine(key.name) && key.get(recipe) != key.default_text())
      card.recipe.emplace_back(key.name, key.get(recipe));
  return training_model_card(card);
}

}  // namespace snug
