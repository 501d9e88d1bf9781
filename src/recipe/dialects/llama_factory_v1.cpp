// LLaMA-Factory's second generation (src/llamafactory/v1/config, 2026-08): plugins in blocks of their own, "peft_config",
// "quant_config", "dist_config", and a batch that is cut into micro-batches.

#include <fmt/format.h>

#include <algorithm>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// training_args: micro_batch_size 1, global_batch_size none (one micro-batch a step), cutoff_len 2048, learning_rate 1e-4,
// max_grad_norm 1, bf16 True, enable_activation_checkpointing True; no peft_config trains every weight; LoraParams: r 8,
// lora_alpha 16, lora_dropout 0.05, target_modules all; BnbParams: double_quantization True, nf4.
void start_llama_factory_v1(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "1");
  reading.assume("gradient_accumulation_steps", "1");
  reading.assume("max_length", "2048");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "true");
  reading.assume("bf16", "true");
  reading.assume("lora_r", "8");
  reading.assume("lora_alpha", "16");
  reading.assume("lora_dropout", "0.05");
  reading.assume("lora_target_modules", "all-linear");
  reading.assume("learning_rate", "1e-4");
  reading.assume("train_on_inputs", "false");
}

void take_peft_name(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "lora") return reading.set(entry, "method", "lora");
  reading.touches(entry, word == "freeze" ? "part of the layers are trained: planned as full, which needs more"
                                          : fmt::format("'{}' is not planned: planned as full", word.substr(0, 40)));
}

void take_quant_name(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "bnb" || word == "auto") return reading.understood(entry);
  reading.touches(entry, fmt::format("quantized by {}: planned as bitsandbytes", word.substr(0, 40)));
}

void take_dist_name(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word.starts_with("fsdp")) reading.result().sharding = Sharding::fsdp;
  if (means_off(word) || word == "ddp") return reading.ignore(entry);
  reading.touches(entry, fmt::format("{} over several devices: the plan is for one device that holds all of it",
                                     lower(word.substr(0, 20))));
}

void take_global_batch(Reading& reading, const Entry& entry) {
  reading.understood(entry, "micro_batch_size times accumulation and devices");
}

void take_strategy(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "normal" || word == "padding_free") return reading.understood(entry);
  reading.touches(entry, fmt::format("{}: how many rows are in a batch depends on their lengths", word.substr(0, 40)));
}

void finish_llama_factory_v1(Reading& reading) {
  Recipe& recipe = reading.recipe();
  const int64_t whole = count_of(reading.value("global_batch_size"));
  if (whole > 0 && recipe.batch > 0)
    reading.decide("gradient_accumulation_steps", fmt::format("{}", std::max<int64_t>(1, whole / recipe.batch)));
  if (recipe.method == Method::full) {
    recipe.quantize = {};
    recipe.lora.modules_to_save.clear();
  }
  reading.result().eval_batch = recipe.batch;
}

bool write_llama_factory_v1(const Document& document, const Wanted& wanted, const RecipeChange& change,
                            std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  if (change.key == "load_in_4bit" || change.key == "load_in_8bit") {
    if (wanted.recipe.method == Method::full) return true;
    if (change.value != "true" && !wanted.recipe.quantize.any()) {
      out.push_back({"quant_config.quantization_bit", "", true});
    } else if (change.value == "true" && document.has("quant_config.quantization_bit")) {
      put("quant_config.quantization_bit", change.key == "load_in_4bit" ? "4" : "8");
    }
    return true;
  }
  if (change.key == "per_device_train_batch_size") put("micro_batch_size", change.value);
  if (change.key == "gradient_accumulation_steps" || (change.key == "per_device_train_batch_size" && !out.empty())) {
    if (document.has("global_batch_size") || change.key == "gradient_accumulation_steps")
      put("global_batch_size", fmt::format("{}", wanted.recipe.batch * wanted.recipe.accumulation));
    return true;
  }
  return change.key == "optim" || change.key == "packing" || change.key == "master_weights" || change.key == "method";
}

// ---- Whose file it is

// LLaMA-Factory's second generation: plugins in blocks.
bool is_llama_factory_v1(const Document& document) {
  return document.has("train_dataset") && has_any(document, {"model", "model_class"}) &&
         has_any(document, {"micro_batch_size", "cutoff_len", "peft_config", "kernel_config", "batching_strategy"});
}

Claim claims_llama_factory_v1(const Document& document) {
  return document.syntax != Syntax::shell && is_llama_factory_v1(document) ? Claim::sure : Claim::none;
}

decltype(Rules::touches) touches() {
  return {
      {"optim_config", "an optimizer of its own"},
      {"optim_config.*", "an optimizer of its own"},
      {"cp_size", "sequences are cut over devices", "1"},
      {"mp_shard_size", "weights are cut over devices", "1"},
      {"mp_replicate_size", "weights stand on several devices", "1"},
      {"peft_config.freeze_*", "part of the weights are trained", "null"},
      {"peft_config.cast_trainable_params_to_fp32", "trained weights in fp32"},
      {"peft_config.adapter_name_or_path", "an adapter is loaded first"},
      {"dist_config.offload_params", "weights go to host memory"},
      {"model_class", "another head or images beside text", "llm"},
      {"pref_*", "preference training: two rows for each example"},
  };
}

}  // namespace

Rules llama_factory_v1_rules() {
  Rules rules;
  rules.name = "LLaMA-Factory v1";
  rules.claims = claims_llama_factory_v1;
  rules.pytorch_trainer = "";
  rules.rows = {
      {"model", "model", take_model},
      {"peft_config.name", "method", take_peft_name},
      {"peft_config.r", "lora_r"},
      {"peft_config.lora_alpha", "lora_alpha"},
      {"peft_config.lora_dropout", "lora_dropout"},
      {"peft_config.target_modules", "lora_target_modules", take_targets},
      {"peft_config.use_rslora", "use_rslora"},
      {"peft_config.use_dora", "use_dora"},
      {"peft_config.modules_to_save", "lora_modules_to_save"},
      {"quant_config.name", "", take_quant_name},
      {"quant_config.quantization_bit", "load_in_4bit", take_quantization_bit},
      {"quant_config.double_quantization", "bnb_4bit_use_double_quant"},
      {"quant_config.quantization_type", "bnb_4bit_quant_type"},
      {"dist_config.name", "", take_dist_name},
      {"micro_batch_size", "per_device_train_batch_size"},
      {"global_batch_size", "", take_global_batch},
      {"cutoff_len", "max_length"},
      {"learning_rate", "learning_rate"},
      {"num_train_epochs", "num_train_epochs"},
      {"max_steps", "max_steps", take_count},
      {"max_grad_norm", "max_grad_norm"},
      {"bf16", "bf16"},
      {"enable_activation_checkpointing", "gradient_checkpointing", take_checkpointing},
      {"batching_strategy", "", take_strategy},
      {"flash_attn", "", take_attention},
      {"train_dataset", "", take_data},
      {"save_steps", "save_steps", take_count},
      {"logging_steps", "logging_steps", take_count},
      {"save_total_limit", "save_total_limit"},
      {"seed", "seed"},
      {"output_dir", "output_dir"},
      {"resume_from_checkpoint", "resume_from_checkpoint"},
  };
  rules.touches = touches();
  rules.ignored = {
      "custom_chat_template trust_remote_code init_config.* kernel_config.* quant_config.* dist_config.* peft_config.* "
      "init_config kernel_config quant_config dist_config peft_config eval_dataset sample_backend max_new_tokens "
      "batching_workers dp_size cp_mode dist_timeout lr_scheduler_config lr_scheduler_config.* full_determinism "
      "save_epochs save_ckpt_as_hf simpo_gamma dpo_label_smoothing ld_alpha words"};
  rules.start = start_llama_factory_v1;
  rules.finish = finish_llama_factory_v1;
  rules.write = write_llama_factory_v1;
  rules.beside = {"global_batch_size", "micro_batch_size", "cutoff_len", "model"};
  return rules;
}

}  // namespace snug::dialects
