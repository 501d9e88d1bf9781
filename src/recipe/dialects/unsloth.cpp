// Unsloth: unsloth_cli/config.py and unsloth-cli.py (2026-08). Most of its users write files of their own around
// FastLanguageModel, in blocks of their own; keys are therefore known by the last part of their path.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// FastLanguageModel.from_pretrained: max_seq_length 2048, load_in_4bit True; get_peft_model: r 16, lora_alpha 16,
// lora_dropout 0, the seven linears, use_gradient_checkpointing "unsloth"; the notebooks' trainer: batch 2, accumulation 4,
// adamw_8bit, bf16 where the device has it. unsloth_cli/config.py: lora_r 64, training_type lora, the rest likewise.
// unsloth/models/rl.py replaces defaults of TRL's configs: batch 4, accumulation 2, adamw_8bit.
void start_unsloth(Reading& reading) {
  const Document& document = reading.document();
  const bool python = document.by_python();
  const bool cli = !python && (document.has("training.max_seq_length") || document.has("training.training_type") ||
                               (!document.command.empty() && document.command[0] == "unsloth"));
  // A script has the defaults of the class that it calls: transformers' own, or those that Unsloth gives TRL's.
  const bool own = !python || !document.command.back().ends_with("TrainingArguments");
  reading.assume("method", "lora");
  reading.assume("load_in_4bit", "true");
  reading.assume("per_device_train_batch_size", python ? (own ? "4" : "8") : "2");
  reading.assume("gradient_accumulation_steps", python ? (own ? "2" : "1") : "4");
  reading.assume("max_length", "2048");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "true");
  reading.assume("optim", own ? "adamw_8bit" : "adamw_torch");
  reading.assume("bf16", "true");
  reading.assume("lora_r", cli ? "64" : "16");
  reading.assume("lora_alpha", "16");
  reading.assume("lora_target_modules", "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj");
}

// Blocks that speak of something else than training.
bool is_elsewhere(const Entry& entry) {
  for (const char* block : {"benchmark", "eval", "inference", "generation", "output", "export", "server", "sampling", "push",
                            "hub", "deploy", "judge"}) {
    const std::string_view path = entry.path;
    if (path.starts_with(block) && path.find('.') != std::string_view::npos) return true;
  }
  return false;
}

template <Take take>
void trained(Reading& reading, const Entry& entry) {
  is_elsewhere(entry) ? reading.ignore(entry) : take(reading, entry);
}

void take_batch(Reading& reading, const Entry& entry) { reading.set(entry, "per_device_train_batch_size", entry.text()); }
void take_accumulation(Reading& reading, const Entry& entry) {
  reading.set(entry, "gradient_accumulation_steps", entry.text());
}
void take_unsloth_length(Reading& reading, const Entry& entry) { reading.set(entry, "max_length", entry.text()); }

void take_own_checkpointing(Reading& reading, const Entry& entry) {
  if (entry.text() == "none" || entry.text() == "None") return reading.set(entry, "gradient_checkpointing", "false");
  take_checkpointing(reading, entry);
}

void take_type(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "lora" || word == "qlora" || word == "full") return reading.set(entry, "method", word);
  reading.ignore(entry);
}

void take_full(Reading& reading, const Entry& entry) {
  reading.set(entry, "method", means_off(entry.text()) ? "lora" : "full");
}

void take_dtype_or_null(Reading& reading, const Entry& entry) {
  if (means_off(entry.text()) || entry.text() == "auto") return reading.understood(entry);
  take_dtype(reading, entry);
}

void take_name(Reading& reading, const Entry& entry) {
  const std::string_view parent = entry.parent();
  if (entry.leaf() == "name" && parent.find("dataset") != std::string_view::npos) return take_data(reading, entry);
  if (entry.leaf() == "name" && parent.find("model") == std::string_view::npos) return reading.ignore(entry);
  if (!reading.result().models.empty()) return reading.ignore(entry);
  take_model(reading, entry);
}

void take_own_steps(Reading& reading, const Entry& entry) { take_count(reading, entry); }

void take_sub_rank(Reading& reading, const Entry& entry) {
  if (entry.parent().find("lora") == std::string_view::npos && entry.parent().find("peft") == std::string_view::npos &&
      entry.parent().find("model") == std::string_view::npos && !entry.parent().empty())
    return reading.ignore(entry);
  const std::string_view leaf = entry.leaf();
  reading.set(entry, leaf == "alpha" ? "lora_alpha" : leaf == "dropout" ? "lora_dropout" : "lora_r", entry.text());
}

void finish_unsloth(Reading& reading) {
  Recipe& recipe = reading.recipe();
  if (const Document& document = reading.document(); document.by_python() && document.command[1] != "sft") {
    reading.result().stage = document.command[1];
    reading.note(why_stage(document.command[1]));
  }
  const std::string& model = recipe.model;
  if (model.ends_with("-bnb-4bit") && !reading.has("load_in_4bit")) reading.decide("load_in_4bit", "true");
  if (recipe.fp16) recipe.bf16 = false;
  if (recipe.method == Method::full) {
    recipe.quantize = {};
    if (recipe.bf16) recipe.master_weights = false;
    recipe.lora.modules_to_save.clear();
  }
  for (const char* whole : {"embed_tokens", "lm_head"})  // get_peft_model trains these whole
    if (std::erase(recipe.lora.target_modules, whole) > 0 && recipe.method == Method::lora)
      recipe.lora.modules_to_save.emplace_back(whole);
  if (recipe.quantize.in_8bit) recipe.quantize.in_4bit = false;
  if (recipe.gradient_checkpointing && !reading.has("gradient_checkpointing"))
    reading.note("gradient checkpointing \"unsloth\" keeps the blocks' inputs in host memory there, on the device here");
}

bool write_unsloth(const Document& document, const Wanted& wanted, const RecipeChange& change,
                   std::vector<TheirSetting>& out) {
  static_cast<void>(document);
  static_cast<void>(wanted);
  static_cast<void>(out);
  return change.key == "master_weights" || (change.key == "optim" && change.value == "adamw_bf16_states");
}

// ---- Whose file it is

// Of Unsloth's own names, or a model of Unsloth's own copies. A model's name, a length and a rank alone are anybody's, who
// need not load in four bits where nothing says so.
bool is_unsloth(const Document& document) {
  constexpr auto kOwn = std::to_array<std::string_view>(
      {"use_gradient_checkpointing", "load_in_4bit", "train_on_completions", "random_state", "training_type"});
  constexpr auto kAnybodys = std::to_array<std::string_view>({"max_seq_length", "model_name", "lora_r", "lora_rank"});
  size_t own = 0, anybodys = 0;
  bool copies = false;
  for (const Entry& entry : document.entries) {
    own += std::ranges::find(kOwn, entry.leaf()) != kOwn.end() ? 1 : 0;
    anybodys += std::ranges::find(kAnybodys, entry.leaf()) != kAnybodys.end() ? 1 : 0;
    copies = copies || entry.text().starts_with("unsloth/") || entry.text() == "unsloth";
  }
  const bool flat = document.has("model_name") && document.has("max_seq_length") && own + anybodys >= 3;
  const bool blocks = document.has("training.max_seq_length") && (document.has("lora") || document.has("training.lora"));
  return ((flat || blocks) && own >= 1) ||
         (copies && (own + anybodys >= 1 || has_any(document, {"model.base_model", "model.name"})));
}

Claim claims_unsloth(const Document& document) {
  if (script_says(document, "unsloth")) return Claim::certain;
  if (!is_unsloth(document)) return Claim::none;
  return document.syntax == Syntax::shell ? Claim::possible : Claim::sure;
}

}  // namespace

Rules unsloth_rules() {  // NOLINT(readability-function-size): a table
  Rules rules;
  rules.name = "Unsloth";
  rules.claims = claims_unsloth;
  rules.tools = {{.program = "unsloth", .verbs = {"train"}}};
  rules.pytorch_trainer = "";
  rules.frames = {"unsloth"};
  rules.by_leaf = true;
  rules.rows = {
      {"model_name", "model", trained<take_name>},
      {"base_model", "model", trained<take_name>},
      {"model_name_or_path", "model", trained<take_name>},
      {"model", "model", trained<take_name>},
      {"model_id", "model", trained<take_name>},
      {"name", "model", trained<take_name>},
      {"per_device_train_batch_size", "per_device_train_batch_size", trained<take_batch>},
      {"batch_size", "per_device_train_batch_size", trained<take_batch>},
      {"micro_batch_size", "per_device_train_batch_size", trained<take_batch>},
      {"training.batch.size", "per_device_train_batch_size", trained<take_batch>},
      {"batch.size", "per_device_train_batch_size", trained<take_batch>},
      {"gradient_accumulation_steps", "gradient_accumulation_steps", trained<take_accumulation>},
      {"grad_accum", "gradient_accumulation_steps", trained<take_accumulation>},
      {"max_seq_length", "max_length", trained<take_unsloth_length>},
      {"max_seq_len", "max_length", trained<take_unsloth_length>},
      {"max_length", "max_length", trained<take_unsloth_length>},
      {"load_in_4bit", "load_in_4bit"},
      {"load_in_8bit", "load_in_8bit"},
      {"lora_r", "lora_r"},
      {"lora_rank", "lora_r"},
      {"r", "lora_r", take_sub_rank},
      {"rank", "lora_r", take_sub_rank},
      {"lora_alpha", "lora_alpha"},
      {"alpha", "lora_alpha", take_sub_rank},
      {"lora_dropout", "lora_dropout"},
      {"dropout", "lora_dropout", take_sub_rank},
      {"target_modules", "lora_target_modules", take_targets},
      {"lora_target_modules", "lora_target_modules", take_targets},
      {"modules_to_save", "lora_modules_to_save"},
      {"use_rslora", "use_rslora"},
      {"use_dora", "use_dora"},
      {"gradient_checkpointing", "gradient_checkpointing", take_own_checkpointing},
      {"use_gradient_checkpointing", "gradient_checkpointing", take_own_checkpointing},
      {"training_type", "method", take_type},
      {"full_finetuning", "method", take_full},
      {"optim", "optim", take_optimizer},
      {"optimizer", "optim", take_optimizer},
      {"packing", "packing"},
      {"bf16", "bf16", take_bf16},
      {"fp16", "fp16"},
      {"dtype", "bf16", take_dtype_or_null},
      {"torch_dtype", "bf16", take_dtype_or_null},
      {"learning_rate", "learning_rate"},
      {"lr", "learning_rate"},
      {"lr_scheduler_type", "lr_scheduler_type"},
      {"lr_scheduler", "lr_scheduler_type"},
      {"lr_scheduler_kwargs", "lr_scheduler_kwargs", take_schedule_arguments},
      {"warmup_steps", "warmup_steps"},
      {"warmup_ratio", "warmup_ratio"},
      {"weight_decay", "weight_decay"},
      {"max_grad_norm", "max_grad_norm"},
      {"max_steps", "max_steps", take_own_steps},
      {"num_train_epochs", "num_train_epochs"},
      {"num_epochs", "num_train_epochs"},
      {"epochs", "num_train_epochs"},
      {"save_steps", "save_steps", take_own_steps},
      {"eval_steps", "eval_steps", take_own_steps},
      {"logging_steps", "logging_steps", take_own_steps},
      {"save_total_limit", "save_total_limit"},
      {"seed", "seed"},
      {"neftune_noise_alpha", "neftune_noise_alpha"},
      {"random_seed", "seed"},
      {"output_dir", "output_dir"},
      {"train_on_completions", "completion_only_loss"},
      {"train_on_responses_only", "completion_only_loss"},
      {"per_device_eval_batch_size", "", take_eval_batch},
      {"dataset", "", trained<take_data>},
      {"dataset_name", "", trained<take_data>},
      {"local_dataset", "", trained<take_data>},
      {"train_file", "", trained<take_data>},
      {"data_dir", "", trained<take_data>},
  };
  add_strategies(rules);
  rules.touches = {
      {"use_loftq", "adapters from the rounding error of the weights"},
      {"loftq_config", "adapters from the rounding error of the weights", "null"},
      {"embedding_learning_rate", "a group of its own in the optimizer"},
      {"vision_all_linear", "images beside text"},
      {"finetune_vision_layers", "images beside text", "true True"},
      {"gpu_memory_utilization", "generation beside the trained model", "", "fast_inference"},
      {"fast_inference", "generation beside the trained model"},
      {"num_generations", "generation beside the trained model"},
      {"float8", "products in fp8 keep copies of weights and activations"},
      {"use_vllm", "generation beside the trained model"},
      {"device_map", "weights are dealt out over devices", "auto sequential"},
  };
  rules.ignored = {
      "format_type weight_decay random_state bias loftq_config finetune_language_layers finetune_attention_modules "
      "finetune_mlp_modules enable_wandb wandb_* enable_tensorboard tensorboard_dir hf_token report_to max_samples "
      "num_samples split dataset_split dataset_text_field dataset_num_proc chat_template text_column data_file train_split "
      "test_split val_split validation_split eval_dataset save_only_final "
      "save_method save_model save_path save_gguf save_merged quantization quantization_method push_* hub_* token "
      "output_name inference_model formats logging_dir run_name project project_name benchmark.* output.* export.* "
      "inference.* generation.* eval.* server.* sampling.* hub.* deploy.* judge.* adam_beta1 adam_beta2 adam_epsilon "
      "remove_unused_columns dataloader_* group_by_length tf32 trust_remote_code use_cache config words "
      "early_stopping_* ddp_* "
      "logging_strategy disable_tqdm shuffle streaming columns instruction_column output_column system_prompt resume_* "
      "overwrite_output_dir subset"};
  rules.start = start_unsloth;
  rules.finish = finish_unsloth;
  rules.write = write_unsloth;
  rules.beside = {"gradient_accumulation_steps",
                  "per_device_train_batch_size",
                  "batch_size",
                  "max_seq_length",
                  "learning_rate",
                  "model_name"};
  return rules;
}

}  // namespace snug::dialects
