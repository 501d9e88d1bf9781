// AutoTrain: autotrain/trainers/clm/params.py and parser.py (0.8). A file has blocks "data", "params" and "hub"; as flags of
// `autotrain llm` the same names stand alone, so keys are known by the last part of their path.

#include <fmt/format.h>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// LLMTrainingParams: batch_size 2, gradient_accumulation 4, peft False, quantization int4 (below an adapter),
// target_modules all-linear, lora_r 16, lora_alpha 32, lora_dropout 0.05, disable_gradient_checkpointing False, lr 3e-5,
// epochs 1, warmup_ratio 0.1, scheduler linear; block_size none is 1024 (utils.py); sft packs; lora_dropout 0.05.
void start(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "2");
  reading.assume("gradient_accumulation_steps", "4");
  reading.assume("max_length", "1024");
  reading.assume("packing", "true");
  reading.assume("gradient_checkpointing", "true");
  reading.assume("lora_r", "16");
  reading.assume("lora_alpha", "32");
  reading.assume("lora_dropout", "0.05");
  reading.assume("lora_target_modules", "all-linear");
  reading.assume("learning_rate", "3e-5");
  reading.assume("num_train_epochs", "1");
  reading.assume("warmup_ratio", "0.1");
  reading.assume("bnb_4bit_use_double_quant", "false");
  reading.assume("bf16", "false");
}

void take_task(Reading& reading, const Entry& entry) {
  const std::string& task = entry.text();
  if (task == "llm" || task == "llm-sft" || task == "llm-generic") return reading.understood(entry);
  if (!task.starts_with("llm-"))
    return reading.touches(entry, fmt::format("{} is not language modelling: planned as that", task.substr(0, 40)));
  reading.result().stage = task.substr(4);
  reading.touches(entry, why_stage(reading.result().stage));
}

// `--trainer` of `autotrain llm` says what a file's task says.
void take_trainer_word(Reading& reading, const Entry& entry) {
  if (entry.text() == "default" || entry.text() == "sft") return reading.understood(entry);
  reading.result().stage = entry.text();
  reading.touches(entry, why_stage(entry.text()));
}

void take_model_name(Reading& reading, const Entry& entry) {
  const std::string_view parent = entry.parent();
  if (!parent.empty() && parent != "params") return reading.ignore(entry);
  take_model(reading, entry);
}

void take_peft(Reading& reading, const Entry& entry) {
  reading.set(entry, "method", means_off(entry.text()) ? "full" : "lora");
}

void take_int_quantization(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "int4" || word == "int8") return reading.set(entry, word == "int4" ? "load_in_4bit" : "load_in_8bit", "true");
  if (means_off(word)) return reading.understood(entry);
  reading.touches(entry, fmt::format("quantization '{}' is not planned", word.substr(0, 40)));
}

void take_precision(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "bf16" || word == "fp16") return reading.set(entry, word, "true");
  reading.understood(entry);
}

void take_block_size(Reading& reading, const Entry& entry) {
  if (entry.values.size() == 1 && (entry.text() == "-1" || entry.text() == "0")) return reading.understood(entry);
  reading.set_list(entry, "max_length", entry.values);
}

void take_no_checkpointing(Reading& reading, const Entry& entry) {
  reading.set(entry, "gradient_checkpointing", means_off(entry.text()) ? "true" : "false");
}

void take_path(Reading& reading, const Entry& entry) {
  if (entry.parent() == "data" || entry.leaf() == "data_path") return take_data(reading, entry);
  reading.ignore(entry);
}

void finish(Reading& reading) {
  Recipe& recipe = reading.recipe();
  const bool lora = recipe.method == Method::lora;
  const bool said = reading.document().has("params.quantization") || reading.document().has("quantization");
  if (lora && !said) reading.assume("load_in_4bit", "true");
  if (!lora && recipe.quantize.any()) {
    recipe.quantize.in_4bit = recipe.quantize.in_8bit = false;
    reading.note("quantization without peft has no effect there: planned without");
  }
  const std::string& stage = reading.result().stage;
  if (stage != "sft" && !reading.has("packing")) reading.assume("packing", "false");
  if (reading.result().eval_batch == 0) reading.result().eval_batch = recipe.batch;
}

bool write(const Document& document, const Wanted& wanted, const RecipeChange& change, std::vector<TheirSetting>& out) {
  const std::string block = document.syntax == Syntax::shell ? "" : "params.";
  const auto put = [&](std::string_view name, std::string value) {
    out.push_back({block + std::string(name), std::move(value)});
  };
  const bool on = change.value == "true";
  if (change.key == "load_in_4bit" || change.key == "load_in_8bit") {
    if (wanted.recipe.method == Method::full) return true;
    if (on) put("quantization", change.key == "load_in_4bit" ? "int4" : "int8");
    if (!on && !wanted.recipe.quantize.any()) put("quantization", "none");
    return true;
  }
  if (change.key == "gradient_checkpointing") return put("disable_gradient_checkpointing", on ? "false" : "true"), true;
  if (change.key == "method") return put("peft", change.value == "full" ? "false" : "true"), true;
  if (change.key == "bf16" || change.key == "fp16") return put("mixed_precision", on ? change.key : "none"), true;
  return change.key == "packing" || change.key == "master_weights" ||
         (change.key == "optim" && change.value == "adamw_bf16_states");
}

// ---- Whose file it is

bool is_autotrain(const Document& document) {
  return document.has("task") && document.has("base_model") && has_any(document, {"params", "project_name"});
}

Claim claims_autotrain(const Document& document) {
  return document.syntax != Syntax::shell && is_autotrain(document) ? Claim::certain : Claim::none;
}

}  // namespace

Rules autotrain_rules() {
  Rules rules;
  rules.name = "AutoTrain";
  rules.claims = claims_autotrain;
  rules.tools = {{.program = "autotrain", .verbs = {"llm"}}};
  rules.frames = {"autotrain"};
  rules.by_leaf = true;
  rules.rows = {
      {"task", "", take_task},
      {"trainer", "", take_trainer_word},
      {"base_model", "model", take_model_name},
      {"model", "model", take_model_name},
      {"path", "", take_path},
      {"data_path", "", take_path},
      {"block_size", "max_length", take_block_size},
      {"batch_size", "per_device_train_batch_size"},
      {"gradient_accumulation", "gradient_accumulation_steps"},
      {"peft", "method", take_peft},
      {"use_peft", "method", take_peft},
      {"quantization", "", take_int_quantization},
      {"lora_r", "lora_r"},
      {"lora_alpha", "lora_alpha"},
      {"lora_dropout", "lora_dropout"},
      {"target_modules", "lora_target_modules", take_targets},
      {"mixed_precision", "", take_precision},
      {"optimizer", "optim", take_optimizer},
      {"scheduler", "lr_scheduler_type"},
      {"lr", "learning_rate"},
      {"epochs", "num_train_epochs"},
      {"warmup_ratio", "warmup_ratio"},
      {"weight_decay", "weight_decay"},
      {"max_grad_norm", "max_grad_norm"},
      {"seed", "seed"},
      {"disable_gradient_checkpointing", "gradient_checkpointing", take_no_checkpointing},
      {"logging_steps", "logging_steps", take_count},
      {"save_total_limit", "save_total_limit"},
      {"project_name", "output_dir"},
      {"use_flash_attention_2", "", take_on},
  };
  rules.touches = {
      {"unsloth", "Unsloth's own kernels and checkpoints"},
      {"model_ref", "a reference model beside the trained one"},
      {"auto_find_batch_size", "the batch is found by trying: snug fit knows the largest beforehand"},
      {"distributed_backend", "weights and states are cut over devices", "ddp"},
      {"vision_tower", "images beside text"},
  };
  rules.ignored = {
      "log backend train_split valid_split chat_template column_mapping column_mapping.* text_column rejected_text_column "
      "prompt_text_column model_max_length max_prompt_length max_completion_length padding add_eos_token merge_adapter "
      "dpo_beta eval_strategy evaluation_strategy username token push_to_hub hub hub.* train words "
      "early_stopping_patience early_stopping_threshold image_column target_column max_seq_length max_target_length "
      "sentence1_column sentence2_column sentence3_column tokens_column tags_column max_doc_stride question_column "
      "answer_column image_square_size objects_column"};
  rules.start = start;
  rules.finish = finish;
  rules.write = write;
  rules.beside = {"gradient_accumulation", "batch_size", "lr", "epochs"};
  return rules;
}

}  // namespace snug::dialects
