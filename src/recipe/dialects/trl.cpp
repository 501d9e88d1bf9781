// TRL: trl/trainer/model_config.py, sft_config.py and the other trainers' configs, trl/scripts/utils.py (2026-07); and, as a
// dialect of its own, plain scripts around Hugging Face's Trainer, which lack SFTConfig's own defaults.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// What is asked and what is answered, where a script cuts them apart: MedicalGPT's, qlora.py's, TRACE's.
constexpr std::pair<const char*, const char*> kJoint[] = {
    {"max_source_length", "max_target_length"}, {"source_max_len", "target_max_len"}, {"max_prompt_len", "max_ans_len"}};

// The script of PEFT's examples (examples/sft/train.py, ModelArguments), told by its switch.
void start_of_peft(Reading& reading) {
  if (!reading.document().has("use_peft_lora")) return;
  reading.assume("lora_r", "64");
  reading.assume("lora_alpha", "16");
  reading.assume("lora_dropout", "0.1");
  reading.assume("lora_target_modules", "q_proj,k_proj,v_proj,o_proj,down_proj,up_proj,gate_proj");
}

// ModelConfig: use_peft False, lora_r 16, lora_alpha 32, lora_dropout 0.05, lora_target_modules none (PEFT's choice),
// use_bnb_nested_quant False; SFTConfig: max_length 1024, packing False, gradient_checkpointing True, bf16 True unless fp16,
// learning_rate 2e-5; TrainingArguments: per_device_train_batch_size 8, per_device_eval_batch_size 8.
void start_trl(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "8");
  reading.assume("max_length", "1024");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "true");
  reading.assume("bf16", "true");
  if (!reading.document().by_python() || !reading.document().own_options) {  // where ModelConfig is not: LoraConfig's own
    reading.assume("lora_r", "16");
    reading.assume("lora_alpha", "32");
    reading.assume("lora_dropout", "0.05");
  }
  start_of_peft(reading);
  reading.assume("learning_rate", "2e-5");
  reading.assume("bnb_4bit_use_double_quant", "false");
  reading.result().eval_batch = 8;
}

// TrainingArguments: gradient_checkpointing False, bf16 False; peft's LoraConfig: r 8, lora_alpha 8.
void start_plain(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "8");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "false");
  reading.assume("bnb_4bit_use_double_quant", "false");
  reading.result().eval_batch = 8;
}

void take_use_peft(Reading& reading, const Entry& entry) {
  reading.set(entry, "method", means_off(entry.text()) ? "full" : "lora");
}

// "--finetuning_type lora", a word of LLaMA-Factory's that older scripts made of it have too.
void take_kind(Reading& reading, const Entry& entry) {
  const std::string word = lower(entry.text());
  if (word == "lora" || word == "full") return reading.set(entry, "method", word);
  reading.touches(entry, "planned as if all weights were trained");
}

// "--bits 4" as in qlora.py, which has 16 and 32 for none.
void take_bits(Reading& reading, const Entry& entry) {
  if (entry.text() == "16" || entry.text() == "32") return reading.ignore(entry);
  take_quantization_bit(reading, entry);
}

void take_part_of_row(Reading& reading, const Entry& entry) {
  for (const char* whole : {"max_length", "max_seq_length", "max_seq_len", "model_max_length"})
    if (!reading.value(whole).empty()) return reading.understood(entry);
  for (const auto& [asked, answered] : kJoint)
    if ((entry.path == asked || entry.path == answered) && joint_length(reading.value(asked), reading.value(answered)) > 0)
      return reading.understood(entry);
  reading.touches(entry, "a part of each row is cut, the other is not said: give max_length");
}

void take_dataset(Reading& reading, const Entry& entry) {
  if (entry.kind != EntryKind::map) return take_data(reading, entry);
  for (const Entry& inside : reading.document().entries)
    if (inside.path.starts_with(entry.path + ".datasets.") && (inside.leaf() == "id" || inside.leaf() == "path"))
      if (reading.result().data.empty() || reading.result().data.back() != inside.text()) reading.data(inside.text());
  reading.ignore(entry);
}

// A number of preference training: its default alone says nothing.
void take_preference(Reading& reading, const Entry& entry) {
  if (reading.result().stage == "sft") reading.result().stage = "dpo";
  reading.touches(entry, why_stage("dpo"));
}

void take_generation(Reading& reading, const Entry& entry) {
  reading.result().stage = "grpo";
  reading.touches(entry, why_stage("grpo"));
}

void take_trl_loss(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "nll" || word == "chunked_nll" || word == "dft") return take_on(reading, entry);
  take_preference(reading, entry);
}

// What PPOConfig derives from the trainer's own keys; other scripts have keys of that name with meanings of their own.
// Scripts like Alpaca-LoRA's say how many rows a step has, and how many of them go through at once.
bool says_both_batches(const Document& document) {
  return count_of_keys(document, {"base_model", "batch_size", "micro_batch_size"}) == 3;
}

void take_ppo_batch(Reading& reading, const Entry& entry) {
  if (reading.document().has("num_ppo_epochs") || reading.document().has("total_episodes")) return reading.ignore(entry);
  if (reading.document().has("peft_lora_r") && entry.path == "batch_size")
    return reading.set(entry, "per_device_train_batch_size", entry.text());
  if (says_both_batches(reading.document()))
    return reading.understood(entry, "micro_batch_size times gradient_accumulation_steps");
  reading.touches(entry, "not one of TrainingArguments' keys: per_device_train_batch_size is read");
}

void take_rows_of_a_step(Reading& reading, const Entry& entry) {
  if (!reading.document().has("micro_train_batch_size")) return take_ppo_batch(reading, entry);
  reading.understood(entry, "micro_train_batch_size times gradient_accumulation_steps, on all devices");
}

void take_micro_batch(Reading& reading, const Entry& entry) {
  if (!reading.document().has("base_model")) return take_ppo_batch(reading, entry);
  reading.set(entry, "per_device_train_batch_size", entry.text());
}

// Alpaca-LoRA's scripts say how many rows a step has, OpenRLHF's how many on all devices.
void decide_accumulation(Reading& reading) {
  const bool all_devices = reading.document().has("micro_train_batch_size");
  const std::string text = reading.value(all_devices ? "train_batch_size" : "batch_size");
  if ((!all_devices && !says_both_batches(reading.document())) || text.empty() || reading.has("gradient_accumulation_steps"))
    return;
  int64_t rows = 0;
  std::from_chars(text.data(), text.data() + text.size(), rows);
  const int64_t at_once = reading.recipe().batch * (all_devices ? std::max<int64_t>(1, reading.result().gpus) : 1);
  reading.decide("gradient_accumulation_steps", std::to_string(std::max<int64_t>(1, rows / std::max<int64_t>(1, at_once))));
}

// A row of GRPO's is a prompt and what is generated behind it; many scripts cut what is asked and what is answered apart.
void decide_joint_rows(Reading& reading) {
  if (reading.has("max_length")) return;
  const auto join = [&](const char* asked, const char* answered) {
    const int64_t rows = joint_length(reading.value(asked), reading.value(answered));
    if (rows > 0) reading.decide("max_length", std::to_string(rows));
    return rows > 0;
  };
  if (reading.result().stage == "grpo") join("max_prompt_length", "max_completion_length");
  for (const auto& [asked, answered] : kJoint)
    if (join(asked, answered)) return reading.note(fmt::format("a row is {} and {} together", asked, answered));
}

void finish_trl(Reading& reading) {
  Recipe& recipe = reading.recipe();
  decide_joint_rows(reading);
  decide_accumulation(reading);
  const auto& command = reading.document().command;
  const bool python = reading.document().by_python();
  if (command.size() >= 2 && (command[0] == "trl" || python) && command[1] != "sft") {
    reading.result().stage = command[1];
    reading.note(why_stage(command[1]));
  }
  // Scripts of users' own switch LoRA on by its rank, without use_peft.
  const bool ranked = reading.has("lora_r") && !reading.is_off("lora_r");
  if (!reading.has("method") && ranked) {
    reading.decide("method", "lora");
    reading.note("lora_r without use_peft: planned as lora");
  }
  if (recipe.fp16) recipe.bf16 = false;
  const bool lora = recipe.method == Method::lora;
  const std::string dtype = reading.value("torch_dtype").empty() ? reading.value("dtype") : reading.value("torch_dtype");
  const bool in_half = dtype == "bfloat16" || dtype == "bf16" || dtype == "auto" || dtype == "float16";
  if (in_half && !recipe.fp16) recipe.bf16 = true;
  if (!lora && in_half) recipe.master_weights = false;  // Trainer keeps no other copy
  if (lora && !in_half && recipe.bf16 && !recipe.quantize.any())
    reading.note(
        dtype.empty()
            ? "no torch_dtype: the frozen weights may be loaded in float32, in twice the bytes; planned in bf16"
            : fmt::format("torch_dtype {}: the frozen weights are loaded so; snug's own engine holds them in bf16", dtype));
  if (!lora) recipe.lora.modules_to_save.clear();
  if (!lora && recipe.quantize.any()) {
    recipe.quantize.in_4bit = recipe.quantize.in_8bit = false;
    reading.note("load_in_4bit and load_in_8bit without an adapter cannot be trained: planned without");
  }
}

bool write_trl(const Document& document, const Wanted& wanted, const RecipeChange& change, std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  if (change.key == "master_weights") {
    if (change.value == "false") put(document.has("dtype") ? "dtype" : "torch_dtype", "bfloat16");
    return true;
  }
  if (change.key == "method") {
    const bool peft = document.has("use_peft_lora");  // its own words
    if (change.value == "qlora") put(peft ? "use_4bit_quantization" : "load_in_4bit", "true");
    put(peft ? "use_peft_lora" : "use_peft", change.value == "full" ? "false" : "true");
    return true;
  }
  if (change.key == "max_length") {
    put(document.has("max_seq_length") ? "max_seq_length"
        : document.has("max_seq_len")  ? "max_seq_len"
                                       : "max_length",
        change.value);
    return true;
  }
  if (change.key == "optim" && change.value == "adamw_bf16_states") return true;
  static_cast<void>(wanted);
  return false;
}

// ---- Whose file it is

bool is_trl(const Document& document) {
  if (!has_any(document, {"model_name_or_path", "model_name", "model"})) return false;
  return has_any(document, {"dataset_name", "dataset_mixture", "dataset_mixer", "dataset_train_split", "dataset_test_split",
                            "use_bnb_nested_quant", "reward_funcs", "max_prompt_length", "num_generations",
                            "chat_template_path", "dataset_num_proc", "dataset_kwargs"});
}

Claim claims_trl(const Document& document) {
  if (document.syntax != Syntax::shell) return is_trl(document) ? Claim::sure : Claim::none;
  const bool theirs =
      is_trl(document) || script_says(document, "sft") || script_says(document, "dpo") || script_says(document, "grpo");
  return theirs ? Claim::likely : Claim::none;
}

// TrainingArguments, or llama-recipes' train_config, by names that few other programs have.
bool is_trainer(const Document& document) {
  if (count_of_keys(document, {"base_model", "micro_batch_size"}) == 2) return true;  // as Alpaca-LoRA's script and its kin
  return has_any(document, {"per_device_train_batch_size", "per_gpu_train_batch_size", "batch_size_training"}) ||
         count_of_keys(document,
                       {"gradient_accumulation_steps", "num_train_epochs", "lr_scheduler_type", "warmup_ratio",
                        "logging_steps", "save_strategy", "eval_strategy", "save_total_limit", "bf16", "fp16", "optim",
                        "deepspeed", "learning_rate", "output_dir", "max_steps", "gradient_checkpointing"}) >= 3;
}

// "train.py keys.yaml"
bool names_a_file_of_keys(const Document& document) {
  const Entry* words = document.find("words");
  return words && std::any_of(words->values.begin(), words->values.end(),
                              [](const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); });
}

// TrainingArguments of a script, or as JSON; as YAML our own reader takes them.
Claim claims_hugging_face(const Document& document) {
  if (document.syntax == Syntax::yaml) return Claim::none;
  if (document.syntax == Syntax::shell && (document.has("config") || names_a_file_of_keys(document))) return Claim::possible;
  const bool other = document.syntax == Syntax::shell ? trains_images(document) : !what_else(document).empty();
  return is_trainer(document) && !other ? Claim::possible : Claim::none;
}

Rules rules(bool plain) {  // NOLINT(readability-function-size): a table
  Rules rules;
  rules.rows = {
      {"use_peft", "method", take_use_peft},
      {"use_lora", "method", take_use_peft},
      {"use_peft_lora", "method", take_use_peft},
      {"finetuning_type", "method", take_kind},
      {"lora_r", "lora_r"},
      {"lora_rank", "lora_r"},
      {"peft_lora_r", "lora_r"},  // of TRL's first script, which many have kept
      {"lora_alpha", "lora_alpha"},
      {"peft_lora_alpha", "lora_alpha"},
      {"lora_dropout", "lora_dropout"},
      {"lora_target_modules", "lora_target_modules", take_targets},
      {"target_modules", "lora_target_modules", take_targets},
      {"lora_modules_to_save", "lora_modules_to_save"},
      {"modules_to_save", "lora_modules_to_save"},
      {"use_rslora", "use_rslora"},
      {"use_dora", "use_dora"},
      {"load_in_4bit", "load_in_4bit"},
      {"load_in_8bit", "load_in_8bit"},
      {"bits", "load_in_4bit", take_bits},
      {"num_bits", "load_in_4bit", take_bits},
      {"quantization_bit", "load_in_4bit", take_bits},
      {"q_lora", "load_in_4bit"},  // FastChat's
      {"use_4bit_quantization", "load_in_4bit"},
      {"use_4bit", "load_in_4bit"},
      {"use_8bit_quantization", "load_in_8bit"},
      {"bnb_4bit_quant_type", "bnb_4bit_quant_type"},
      {"quant_type", "bnb_4bit_quant_type"},
      {"double_quant", "bnb_4bit_use_double_quant"},
      {"use_bnb_nested_quant", "bnb_4bit_use_double_quant"},
      {"use_nested_quant", "bnb_4bit_use_double_quant"},
      {"bnb_4bit_use_double_quant", "bnb_4bit_use_double_quant"},
      {"bnb_4bit_compute_dtype", "bnb_4bit_compute_dtype"},
      {"max_length", "max_length"},
      {"max_seq_length", "max_length"},
      {"max_seq_len", "max_length"},
      {"model_max_length", "max_length"},
      {"seq_length", "max_length"},
      {"max_source_length", "", take_part_of_row},
      {"source_max_len", "", take_part_of_row},
      {"target_max_len", "", take_part_of_row},
      {"max_prompt_len", "", take_part_of_row},
      {"max_ans_len", "", take_part_of_row},
      {"packing", "packing"},
      {"torch_dtype", "bf16", take_dtype},
      {"dtype", "bf16", take_dtype},
      {"attn_implementation", "", take_attention},
      {"use_flash_attn", "", take_on},
      {"padding_free", "", take_padding_free},
      {"completion_only_loss", "completion_only_loss"},
      {"assistant_only_loss", "assistant_only_loss"},
      {"loss_type", "", take_trl_loss},
      {"accelerate_config", "", take_accelerate},
      {"dataset_name", "", take_dataset},
      {"dataset_mixture", "", take_dataset},
      {"dataset_mixer", "", take_dataset},
      {"datasets", "", take_dataset},
      {"dataset", "", take_dataset},
      {"data_path", "", take_dataset},
      {"train_file", "", take_dataset},
      {"model_name", "model", take_model},
      {"model", "model", take_model},
      {"model_id", "model", take_model},
      {"base_model", "model", take_model},
      {"model_path", "model", take_model},
      {"base_model_dir", "model", take_model},
      {"base_model_path", "model", take_model},
      {"batch_size_training", "per_device_train_batch_size"},
      {"pretrain", "model", take_model},  // OpenRLHF's words
      {"micro_train_batch_size", "per_device_train_batch_size"},
      {"train_batch_size", "", take_rows_of_a_step},
      {"max_len", "max_length"},
      {"max_epochs", "num_train_epochs"},
      {"beta", "", take_preference},
      {"max_prompt_length", "", take_preference},
      {"max_completion_length", "", take_generation},
      {"num_generations", "", take_generation},
      {"reward_funcs", "", take_generation},
      {"reward_model_path", "", take_generation},
      {"use_vllm", "", take_generation},
      {"num_ppo_epochs", "", take_generation},
      {"batch_size", "", take_ppo_batch},
      {"mini_batch_size", "", take_ppo_batch},
      {"micro_batch_size", "per_device_train_batch_size", take_micro_batch},
      {"local_mini_batch_size", "", take_ppo_batch},
  };
  rules.touches = {
      {"precompute_ref_log_probs", "the reference model is run beforehand"},
      {"rpo_alpha", "see beta"},
      {"ref_model_*", "a reference model beside the trained one"},
      {"sync_ref_model", "a reference model beside the trained one"},
      {"ref_adapter_name", "a reference adapter beside the trained one"},
      {"teacher_model*", "a teacher beside the trained model"},
      {"sft_model_path", "a reference model beside the trained one"},
      {"cast_lm_head_to_fp32", "the head in fp32"},
      {"lora_target_parameters", "adapters on single parameters"},
      {"model_init_kwargs", "the model is loaded with other settings"},
      {"vllm_gpu_memory_utilization", "generation on the same device", "", "use_vllm"},
      {"lora_bias", "biases are trained", "none"},
      {"init_lora_weights", "adapters begin otherwise", "true True"},
      {"router_aux_loss_coef", "the router's logits are kept"},
      {"rope_scaling", "another rotary scaling, for longer sequences"},
      {"report_memory", "memory is recorded"},
      {"use_transformers_*", "generation beside the trained model"},
      {"precompute_ref_batch_size", "the reference model is run beforehand"},
      {"reward_model_name_or_path", "a reward model beside the trained one"},
      {"gpu_memory_utilization", "generation on the same device"},
      {"tensor_parallel_size", "weights are cut over devices", "1"},
      {"data_parallel_size", "generation over several devices", "1"},
      {"max_model_len", "generation beside the trained model"},
      {"speculative_config", "generation with a second model"},
      {"local_batch_size", "PPO's own batches"},
      {"use_unsloth", "Unsloth's kernels", "false False"},
      {"use_loftq", "adapters begin otherwise", "false False"},
  };
  add_trainer(rules);
  rules.ignored.emplace_back(
      "dataset_config dataset_config_name dataset_text_field dataset_kwargs dataset_num_proc dataset_train_split "
      "dataset_test_split dataset_streaming dataset_split dataset_batch_size test_split_size chat_template "
      "chat_template_path chat_template_kwargs system_prompt eos_token pad_token truncation_mode shuffle_dataset "
      "packing_strategy eval_packing pad_to_multiple_of lora_task_type bnb_4bit_quant_storage ignore_bias_buffers "
      "model_code_revision base_model_revision use_flash_attention_2 num_proc preprocessing_* block_size validation_* "
      "max_train_samples max_eval_samples text_column max_samples streaming seed_data benchmarks callbacks config "
      "is_reward reward_weights scale_rewards epsilon epsilon_high temperature top_p top_k min_p "
      "repetition_penalty log_completions* num_completions_to_print vllm_* generation_* mask_truncated_completions "
      "num_iterations steps_per_generation importance_sampling_level importance_* label_smoothing loss_weights ld_alpha "
      "f_divergence_type f_alpha_divergence_coef discopop_tau disable_dropout desirable_weight undesirable_weight "
      "generate_during_eval center_rewards_coefficient max_target_length kl_coef cliprange* vf_coef gamma lam "
      "whiten_rewards "
      "num_mini_batches total_episodes response_length stop_token* missing_eos_penalty output_router_logits delta "
      "cpo_alpha simpo_gamma lmbda seq_kd use_weighting script_args words python_module tokenizer "
      "num_generations_eval ds3_gather_for_generation cache_implementation normalize_advantages reward_clip_range "
      "log_multimodal log_unique_prompts sapo_* vespo_* multi_objective_aggregation top_entropy_quantile entropy_* "
      "use_adaptive_entropy max_tool_calling_iterations off_policy_mask_threshold use_bias_correction_kl revision "
      "max_new_tokens is_encoder_decoder prompt_sample_size min_density_ratio max_density_ratio mixture_coef padding_value "
      "alpha local_rollout_forward_batch_size num_sample_generations world_size num_total_batches model_adapter_name "
      "kl_estimator step_separator train_on_last_step_only num_processes dataset_prompt_column host port "
      "distributed_executor_backend kv_cache_dtype enable_prefix_caching enforce_eager transformers_* "
      "chat_template_format add_special_tokens append_concat_token splits use_reentrant bnb_4bit_quant_storage_dtype "
      "dataset_splits no_remove_unused_columns tpo_alpha max_turns async_generation_timeout");
  rules.start = plain ? start_plain : start_trl;
  rules.finish = finish_trl;
  rules.write = write_trl;
  rules.beside = {
      "gradient_accumulation_steps", "per_device_train_batch_size", "max_length", "max_seq_length", "learning_rate",
      "model_name_or_path"};
  return rules;
}

}  // namespace

Rules trl_rules() {
  Rules made = rules(false);
  made.name = "TRL";
  made.claims = claims_trl;
  made.tools = {
      {.program = "trl",
       .verbs = {"sft", "dpo", "kto", "grpo", "reward", "rloo", "orpo", "cpo", "ppo", "gkd", "online_dpo", "prm"}}};
  made.frames = {"trl"};
  return made;
}

Rules hugging_face_rules() {
  Rules made = rules(true);
  made.name = "Hugging Face Trainer";
  made.claims = claims_hugging_face;
  made.frames = {"transformers"};
  return made;
}

}  // namespace snug::dialects
