#include "ask/pytorch_evaluation.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "ask/pytorch_setup.h"
#include "base/error.h"

namespace snug {

namespace {

constexpr int64_t kDefaultBatch = 8;  // training_args.py, per_device_eval_batch_size

// A number of at least 1.
std::optional<int64_t> number_in(const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number > 0 ? std::optional(number) : std::nullopt;
}

int64_t number_of(const Arguments& arguments, const std::string& flag) {
  const std::optional<int64_t> number = number_in(arguments.value(flag));
  if (!number) throw UsageError("--" + flag + " is a number, at least 1, not '" + arguments.value(flag) + "'");
  return *number;
}

const ForeignKey* key_named(const ForeignRecipe& file, std::string_view name) {
  const auto found = std::ranges::find_if(
      file.keys, [&](const ForeignKey& key) { return key.name == name || key.name.ends_with("." + std::string(name)); });
  return found == file.keys.end() ? nullptr : &*found;
}

// eval_accumulation_steps of another trainer's file; 0: it has none.
int64_t moved_after(const ForeignRecipe& file, const std::string& name) {
  const ForeignKey* key = key_named(file, "eval_accumulation_steps");
  if (key == nullptr || !is_on(*key)) return 0;
  const std::optional<int64_t> number = number_in(key->value);
  if (!number)
    throw Error("eval_accumulation_steps is '" + key->value.substr(0, 40) + "'", name, "write a number, at least 1");
  return *number;
}

// eval_strategy decides where a file has it. Without it axolotl (core/builders/base.py) and ms-swift
// (argument/sft_args.py) evaluate whatever rows are held out; TrainingArguments' default is "no".
bool evaluates(const ForeignRecipe& file, const Recipe& recipe) {
  for (const char* name : {"eval_strategy", "evaluation_strategy"})
    if (const ForeignKey* key = key_named(file, name)) return is_on(*key) && key->value != "no";
  if (const ForeignKey* key = key_named(file, "do_eval"); key != nullptr && is_on(*key)) return true;
  const bool by_itself = file.dialect == Dialect::axolotl || file.dialect == Dialect::swift;
  return by_itself && snug::evaluates(recipe);
}

// Where a file says nothing of it, axolotl and AutoTrain take training's, which advice may change.
int64_t batch_of(const ForeignRecipe& file, const Recipe& recipe) {
  const bool follows = file.dialect == Dialect::axolotl || file.dialect == Dialect::autotrain;
  if (follows && key_named(file, evaluation_batch_key(file.dialect)) == nullptr) return recipe.batch;
  return file.eval_batch > 0 ? file.eval_batch : kDefaultBatch;
}

// Whether the model's own use_cache is on while it is evaluated: axolotl and LLaMA-Factory switch it off.
bool keeps_cache(const Arguments& arguments, const eager::StackProfile& stack) {
  if (!stack.trainer_keeps_cache) return false;
  if (!arguments.foreign || arguments.foreign->dialect == Dialect::hugging_face) return true;
  return arguments.foreign->dialect == Dialect::trl && !stack.sft_drops_cache;
}

}  // namespace

bool is_about_evaluation(const ForeignKey& key) { return key.name == "eval_sequence_len"; }

eager::Evaluation pytorch_evaluation(const Arguments& arguments, const Recipe& recipe, const eager::Setup& setup,
                                     const eager::StackProfile& stack) {
  eager::Evaluation evaluation;
  const auto& file = arguments.foreign;
  evaluation.keeps_outputs = arguments.has("compute-metrics");
  if (evaluation.keeps_outputs && !arguments.has("eval-rows"))
    throw UsageError("--compute-metrics needs --eval-rows N: what is kept grows with the rows");
  const bool asked = arguments.has("eval-rows") || (file ? evaluates(*file, recipe) : snug::evaluates(recipe));
  if (!asked || setup.program != eager::Program::transformers || setup.own_loop) return {};
  if (file) evaluation.batch = batch_of(*file, recipe);
  if (file) evaluation.length = file->eval_length;
  if (arguments.has("eval-batch")) evaluation.batch = number_of(arguments, "eval-batch");
  // whose number is not known; without outputs that are kept two batches are as good as many
  evaluation.rows = recipe.val_size >= 1 ? static_cast<int64_t>(recipe.val_size) : 2 * evaluation.batch;
  if (arguments.has("eval-rows")) evaluation.rows = number_of(arguments, "eval-rows");
  if (file) evaluation.moved_after = moved_after(*file, arguments.recipe_file);
  if (arguments.has("eval-accumulation-steps")) evaluation.moved_after = number_of(arguments, "eval-accumulation-steps");
  evaluation.cache = keeps_cache(arguments, stack);
  return evaluation;
}

}  // namespace snug
