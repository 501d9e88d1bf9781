#include "advise/foreign_fit.h"

#include <algorithm>

#include "recipe/keys.h"

namespace snug {

namespace {

bool holds(const std::vector<std::string>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool can_say(const FileInQuestion& file, const std::vector<Setting>& settings) {
  std::vector<RecipeChange> changes;
  for (const Setting& setting : settings) changes.push_back({setting.key, setting.value});
  return change_foreign_recipe(file.text, file.name, changes).unsaid.empty();
}

// The change of the file that makes it the recipe.
RecipePatch patch_towards(const FileInQuestion& file, Recipe recipe) {
  recipe.memory_bytes = file.recipe.recipe.memory_bytes;
  recipe.model = file.recipe.recipe.model;
  std::vector<RecipeChange> changes;
  for (const Setting& setting : differences(file.recipe.recipe, recipe)) {
    const bool of_run = setting.key == "data" || setting.key == "eval_data" || setting.key == "threads";
    if (!of_run) changes.push_back({setting.key, setting.value});
  }
  return change_foreign_recipe(file.text, file.name, changes);
}

// Our names of what the file has no words for.
std::vector<std::string> unsaid_of(const FileInQuestion& file, const Recipe& recipe) {
  std::vector<std::string> keys;
  for (const RecipeChange& change : patch_towards(file, recipe).unsaid) keys.push_back(change.key);
  return keys;
}

// One other value of a key that is searched, to see whether there are words for it.
Setting another_value(const Recipe& recipe, std::string_view key) {
  if (key == "optim") return {"optim", recipe.optim == Optimizer::adamw_8bit ? "adamw_torch" : "adamw_8bit"};
  return {"gradient_checkpointing", recipe.gradient_checkpointing ? "false" : "true"};
}

}  // namespace

std::vector<std::string> free_keys(FitQuestion& question, const FileInQuestion& file,
                                   const std::vector<std::string>& keys_of_flags) {
  constexpr std::string_view kSearched[] = {"per_device_train_batch_size",
                                            "gradient_accumulation_steps",
                                            "gradient_checkpointing",
                                            "optim",
                                            "load_in_4bit",
                                            "load_in_8bit",
                                            "prepare_model_for_kbit_training"};
  std::vector<std::string> freed;
  std::vector<std::string>& keys = question.keys_set;
  for (const std::string_view key : kSearched) {
    if (holds(keys_of_flags, key) || !question.is_set(key)) continue;
    freed.emplace_back(key);
    std::erase(keys, key);
  }
  for (const char* key : {"optim", "gradient_checkpointing"}) {
    if (holds(keys_of_flags, key) || can_say(file, {another_value(question.recipe, key)})) continue;
    std::erase(freed, key);
    keys.emplace_back(key);
  }
  // They know no single blocks, and no disk.
  for (const char* key :
       {"method", "lora_r", "lora_target_modules", "checkpoint_layers", "offload_activations", "offload_weights"})
    if (!question.is_set(key)) keys.emplace_back(key);
  if (question.recipe.seq_len > 0 && !question.is_set("max_length")) keys.emplace_back("max_length");
  question.file = FileLimits{.can_say = [&file](const std::vector<Setting>& settings) { return can_say(file, settings); },
                             .can_become = {},
                             .method_asked = holds(keys_of_flags, "method")};
  // What the file cannot say of the question itself (a flag's doing) it need not say of an answer.
  question.file->can_become = [&file, unsaid = unsaid_of(file, question.recipe)](const Recipe& recipe) {
    const std::vector<std::string> left = unsaid_of(file, recipe);
    return std::all_of(left.begin(), left.end(), [&](const std::string& key) { return holds(unsaid, key); });
  };
  return freed;
}

std::optional<RecipePatch> patch_of(const FileInQuestion& file, const FitAnswer& answer) {
  if (!answer.fits()) return std::nullopt;
  return patch_towards(file, answer.report().front.front().recipe);
}

}  // namespace snug
