// ms-swift: swift/arguments (base_args, sft_args, tuner_args, rlhf_args) and swift/trainers/arguments.py (2026-08).

#include <fmt/format.h>

#include <algorithm>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

// Words of today: "all-router" and "all-embedding" beside "all-linear". Of its second generation: "DEFAULT" and "AUTO" are
// the projections that make queries, keys and values.
void take_adapted(Reading& reading, const Entry& entry) {
  const std::string word = entry.values.size() == 1 ? lower(entry.values[0]) : "";
  if (word == "all") return reading.set(entry, "lora_target_modules", "all-linear");
  for (const char* more : {"all-router", "all-embedding"})
    for (const std::string& value : entry.values)
      if (value.find(more) != std::string::npos) {
        reading.decide("lora_target_modules", "all-linear");
        return reading.touches(entry, "adapters on embeddings and routers are not planned: planned on every linear");
      }
  if (word != "default" && word != "auto" && word != "qkv") return take_targets(reading, entry);
  reading.set(entry, "lora_target_modules", "q_proj,k_proj,v_proj");
}

namespace {

// trainers/arguments.py: per_device_train_batch_size 1, per_device_eval_batch_size 1, gradient_checkpointing True,
// gradient_accumulation_steps 16 sequences a step, lr_scheduler_type cosine, weight_decay 0.1, adam_beta2 0.95,
// learning_rate 1e-4 (lora) or 1e-5; tuner_args: tuner_type lora, lora_rank 8, lora_alpha 32, lora_dropout 0.05,
// target_modules all-linear; quant_args: nf4, double quantization; torch_dtype none is the checkpoint's, bf16 mostly.
void start_swift(Reading& reading) {
  reading.assume("method", "lora");
  reading.assume("per_device_train_batch_size", "1");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "true");
  reading.assume("bf16", "true");
  reading.assume("lora_r", "8");
  reading.assume("lora_alpha", "32");
  reading.assume("lora_dropout", "0.05");
  reading.assume("lora_target_modules", "all-linear");
  reading.assume("lr_scheduler_type", "cosine");
  reading.assume("learning_rate", "1e-4");
  reading.assume("adam_beta2", "0.95");
  reading.assume("weight_decay", "0.1");
  reading.result().eval_batch = 1;
}

void take_tuner(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "lora" || word == "full") return reading.set(entry, "method", word);
  if (word == "qlora") return reading.set(entry, "method", "qlora");
  reading.touches(entry, fmt::format("'{}' is not planned: planned as lora", word.substr(0, 40)));
}

void take_quant_method(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "bnb" || !(reading.is_on("quant_bits") || reading.is_on("quantization_bit"))) return reading.understood(entry);
  reading.touches(entry, fmt::format("quantized by {}: planned as bitsandbytes", word.substr(0, 40)));
}

void take_swift_dtype(Reading& reading, const Entry& entry) {
  if (lower(entry.text()) == "auto") return reading.understood(entry, "the checkpoint's own dtype, taken to be bf16");
  take_dtype(reading, entry);
}

void take_compute_dtype(Reading& reading, const Entry& entry) {
  const std::string word = lower(entry.text());
  if (word == "auto") return reading.understood(entry);
  reading.set(entry, "bnb_4bit_compute_dtype", word == "bf16" ? "bfloat16" : word == "fp16" ? "float16" : entry.text());
}

// In its second generation the name of a model, "qwen-7b-chat"; today that of a family.
void take_model_type(Reading& reading, const Entry& entry) {
  const Document& document = reading.document();
  for (const char* name : {"model", "model_id_or_path", "load", "mcore_model"})
    if (document.has(name)) return reading.ignore(entry);
  reading.model(entry.text());
  reading.understood(entry, "names the model");
}

void take_tuned_vit(Reading& reading, const Entry& entry) {
  if (!means_off(entry.text())) return reading.ignore(entry);
  if (reading.value("model_meta").find("is_multimodal=False") != std::string::npos) return reading.ignore(entry);
  reading.touches(entry, "the part that sees images is trained");
}

void take_rlhf(Reading& reading, const Entry& entry) {
  if (reading.document().syntax == Syntax::shell && reading.document().command.back() != "rlhf")
    return reading.ignore(entry);
  take_stage(reading, entry);
}

void finish_swift(Reading& reading) {
  Recipe& recipe = reading.recipe();
  const Document& document = reading.document();
  if (document.command.size() == 2 && document.command[1] == "pt") reading.result().stage = "pt";
  const std::string verb = document.command.size() == 2 && document.command[0] == "swift" ? document.command[1] : "";
  if (verb == "dpo" || verb == "orpo" || verb == "simpo" || verb == "kto" || verb == "cpo") {
    reading.result().stage = verb;
    reading.note(why_stage(verb));
  }
  if (verb == "rlhf" && !document.has("rlhf_type")) {
    reading.result().stage = "dpo";  // rlhf_args: rlhf_type dpo
    reading.note(why_stage("dpo"));
  }
  if (recipe.fp16) recipe.bf16 = false;
  if (!reading.has("max_length")) reading.note("no max_length: the model's own limit holds there; planned shorter");
  if (!reading.has("gradient_accumulation_steps")) {  // ceil(16 / batch / devices)
    const int64_t devices = std::max<int64_t>(1, reading.result().gpus);
    const int64_t together = recipe.batch > 0 && recipe.batch < 1000 && devices < 1000 ? recipe.batch * devices : 16;
    reading.assume("gradient_accumulation_steps", fmt::format("{}", std::max<int64_t>(1, (16 + together - 1) / together)));
  }
  // Weights in the dtype asked for, and no other copy.
  if (recipe.method == Method::full && recipe.bf16) recipe.master_weights = false;
  if (recipe.method == Method::full) recipe.lora.modules_to_save.clear();
}

bool write_swift(const Document& document, const Wanted& wanted, const RecipeChange& change,
                 std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  if (change.key == "load_in_4bit" || change.key == "load_in_8bit") {
    const bool four = change.key == "load_in_4bit";
    const std::string name = document.has("quantization_bit") ? "quantization_bit" : "quant_bits";
    if (change.value == "true") {
      put(name, four ? "4" : "8");
      if (name == "quant_bits") put("quant_method", "bnb");
    } else if ((four ? wanted.read.recipe.quantize.in_4bit : wanted.read.recipe.quantize.in_8bit) && document.has(name)) {
      out.push_back({name, "", true});
      if (document.has("quant_method")) out.push_back({"quant_method", "", true});
    }
    return true;
  }
  if (change.key == "method" && !document.has("tuner_type"))
    return put("train_type", change.value == "full" ? "full" : "lora"), true;
  return change.key == "optim" && change.value == "adamw_bf16_states";
}

// ---- Whose file it is

bool is_swift(const Document& document) {
  if (!has_any(document, {"model", "model_id_or_path", "model_dir", "ckpt_dir"})) return false;
  if (document.has("swift_version")) return true;
  // Somebody's own, beside keys that many have.
  const bool named = has_any(document, {"train_type", "tuner_type", "sft_type", "rlhf_type"});
  if (!named && has_any(document, {"max_seq_length", "bits", "r", "batch_size"})) return false;
  return has_any(document, {"dataset", "train_type", "tuner_type", "sft_type", "rlhf_type"}) &&
         count_of_keys(document,
                       {"train_type", "tuner_type", "sft_type", "rlhf_type", "lora_rank", "target_modules", "max_length",
                        "val_dataset", "quant_bits", "loss_scale", "split_dataset_ratio", "per_device_train_batch_size",
                        "freeze_vit", "dataset_num_proc", "attn_impl", "dataset", "torch_dtype"}) >= 3;
}

Claim claims_swift(const Document& document) {
  if (document.syntax != Syntax::shell) return is_swift(document) ? Claim::sure : Claim::none;
  const bool theirs = has_any(document, {"model_id_or_path", "sft_type", "tuner_type", "train_type"}) ||
                      script_says(document, "llm_sft") || script_says(document, "swift");
  return theirs ? Claim::sure : Claim::none;
}

}  // namespace

Rules swift_rules() {  // NOLINT(readability-function-size): a table
  Rules rules;
  rules.name = "ms-swift";
  rules.claims = claims_swift;
  rules.tools = {{.program = "swift", .verbs = {"sft", "pt", "rlhf", "dpo", "orpo", "simpo", "kto", "cpo"}}};
  rules.frames = {"swift"};
  rules.rows = {
      {"template", "", take_template},
      {"model", "model", take_model},
      {"model_id_or_path", "model", take_model},
      {"tuner_type", "method", take_tuner},
      {"train_type", "method", take_tuner},
      {"sft_type", "method", take_tuner},
      {"quant_bits", "load_in_4bit", take_quantization_bit},
      {"quantization_bit", "load_in_4bit", take_quantization_bit},
      {"quant_method", "", take_quant_method},
      {"bnb_4bit_quant_type", "bnb_4bit_quant_type"},
      {"bnb_4bit_use_double_quant", "bnb_4bit_use_double_quant"},
      {"bnb_4bit_compute_dtype", "bnb_4bit_compute_dtype", take_compute_dtype},
      {"bnb_4bit_comp_dtype", "bnb_4bit_compute_dtype", take_compute_dtype},
      {"max_length", "max_length"},
      {"lora_rank", "lora_r"},
      {"lora_alpha", "lora_alpha"},
      {"lora_dropout", "lora_dropout"},
      {"lora_dropout_p", "lora_dropout"},
      {"target_modules", "lora_target_modules", take_adapted},
      {"lora_target_modules", "lora_target_modules", take_adapted},
      {"modules_to_save", "lora_modules_to_save"},
      {"lora_modules_to_save", "lora_modules_to_save"},
      {"use_liger", "", take_on},
      {"use_rslora", "use_rslora"},
      {"use_dora", "use_dora"},
      {"packing", "packing"},
      {"torch_dtype", "bf16", take_swift_dtype},
      {"dtype", "bf16", take_swift_dtype},
      {"use_flash_attn", "", take_on},
      {"deepspeed_config_path", "", take_deepspeed},
      {"model_type", "", take_model_type},
      {"attn_impl", "", take_attention},
      {"padding_free", "", take_padding_free},
      {"split_dataset_ratio", "val_size"},
      {"train_dataloader_shuffle", "shuffle"},
      {"dataset", "", take_data},
      {"rlhf_type", "", take_rlhf},
      {"freeze_vit", "", take_tuned_vit},
      {"freeze_aligner", "", take_tuned_vit},
      {"batch_size", "per_device_train_batch_size"},
      {"micro_batch_size", "per_device_train_batch_size"},
      {"lr", "learning_rate"},
      {"vit_gradient_checkpointing", "", take_on},
      {"use_logits_to_keep", "", take_on},
  };
  rules.touches = {
      {"use_galore", "the optimizer works on projections of gradients"},
      {"galore_*", "see use_galore", "", "use_galore"},
      {"use_q_galore", "the optimizer works on projections of gradients"},
      {"lisa_activated_layers", "other layers are trained every few steps"},
      {"lisa_step_interval", "see lisa_activated_layers", "", "lisa_activated_layers"},
      {"optimizer", "an optimizer of its own"},
      {"freeze_llm", "the language model is not trained"},
      {"freeze_parameters_ratio", "part of the weights are trained"},
      {"freeze_parameters*", "part of the weights are trained"},
      {"trainable_parameters*", "part of the weights are trained"},
      {"target_regex", "a pattern of module names is not read"},
      {"target_parameters", "adapters on single parameters"},
      {"lora_dtype", "the adapter in another dtype", "float32 fp32 AUTO"},
      {"lora_bias", "biases are trained", "none"},
      {"init_weights", "adapters begin otherwise", "true True gaussian"},
      {"init_lora_weights", "adapters begin otherwise", "true True gaussian"},
      {"lorap_lr_ratio", "two groups of parameters in the optimizer"},
      {"use_swift_lora", "another adapter's own code"},
      {"sequence_parallel_size", "sequences are cut over devices", "1"},
      {"max_pixels", "images beside text"},
      {"new_special_tokens", "the embedding grows"},
      {"rope_scaling", "another rotary scaling, for longer sequences"},
      {"router_aux_loss_coef", "the router's logits are kept"},
      {"device_map", "weights are dealt out over devices", "auto"},
      {"max_memory", "weights are dealt out over devices"},
      {"ref_model", "a reference model beside the trained one"},
      {"ref_adapters", "a reference adapter beside the trained one"},
      {"reward_model", "a reward model beside the trained one"},
      {"reward_adapters", "a reward model beside the trained one"},
      {"reward_funcs", "generation and rewards beside the trained model"},
      {"teacher_model", "a teacher beside the trained model"},
      {"teacher_adapters", "a teacher beside the trained model"},
      {"use_vllm", "generation beside the trained model"},
      {"num_generations", "generation beside the trained model", "", "use_vllm"},
      {"num_labels", "a head of its own"},
      {"task_type", "another task than language modelling", "causal_lm"},
      {"deepspeed_autotp_size", "weights are cut over devices"},
      {"zero_hpz_partition_size", "weights stand on several devices"},
      {"enable_channel_loss", "the loss is kept by channel"},
      {"eval_use_evalscope", "evaluation generates text and keeps keys and values"},
      {"adapters", "an adapter is loaded first"},
      {"resume_from_adapter", "an adapter is loaded first"},
      {"sync_ref_model", "a reference model beside the trained one"},
      {"fsdp_num", "weights are cut over devices", "1"},
      {"use_profiler", "memory is recorded"},
      {"trainable_modules", "part of the weights are trained"},
      {"additional_trainable_parameters", "part of the weights are trained"},
      {"lora_lr_ratio", "two groups of parameters in the optimizer"},
      {"device_map_config_path", "weights are dealt out over devices"},
      {"offload_*", "weights or states go to host memory between generation and training"},
      {"tensor_model_parallel_size", "weights are cut over devices", "1"},
      {"pipeline_model_parallel_size", "layers are dealt out over devices", "1"},
      {"context_parallel_size", "sequences are cut over devices", "1"},
      {"expert_model_parallel_size", "experts are cut over devices", "1"},
      {"sequence_parallel", "activations are cut over devices"},
      {"recompute_*", "Megatron's own recomputation"},
      {"global_batch_size", "Megatron's whole batch"},
      {"train.*", "the devices that train, apart from those that generate"},
      {"rollout.*", "generation beside the trained model"},
      {"teacher.*", "a teacher beside the trained model"},
  };
  add_trainer(rules);
  rules.ignored.emplace_back(
      "model_* template_* system tuner_backend add_version create_checkpoint_symlink ckpt_dir rank "
      "global_world_size local_world_size _val_dataset_exists hub use_hf training_args swift_version "
      "truncation_strategy agent_template norm_bbox use_chat_template padding_side loss_scale is_binary_loss_scale "
      "response_prefix enable_thinking preserve_thinking add_non_thinking_prefix disable_ignore_empty_think val_dataset "
      "val_dataset_* cached_dataset cached_val_dataset dataset_* train_dataset_sample interleave_prob stopping_strategy "
      "shuffle_buffer_size download_mode columns strict disable_auto_column_mapping custom_dataset_info hqq_axis "
      "bnb_4bit_quant_storage max_new_tokens temperature top_k top_p repetition_penalty num_beams stream stop_words "
      "logprobs top_logprobs structured_outputs_regex external_plugins custom_register_path enable_npu_model_patch "
      "load_args load_data_args packing_* lazy_tokenize ignore_args_error llamapro_* adapter_act adapter_length adalora_* "
      "boft_* vera_* fourier_* reft_* lora_ga_* swanlab_* experts_impl local_repo_path init_strategy problem_type "
      "enable_dft_loss safe_serialization max_shard_size check_model acc_strategy max_epochs aligner_lr vit_lr "
      "ds3_gather_for_generation resume_only_model loss_type eval_metric callbacks early_stop_interval eval_dataset "
      "eval_dataset_args eval_limit eval_generation_config extra_eval_args use_flash_ckpt use_ray ray_exp_name "
      "device_groups streaming load_from_cache_file model_kwargs beta label_smoothing loss_weights rpo_alpha ld_alpha "
      "cpo_alpha sft_alpha simpo_gamma desirable_weight undesirable_weight max_completion_length vllm_* reward_weights "
      "reference_free discopop_tau epsilon epsilon_high log_completions num_iterations dynamic_sample sleep_level "
      "mrl_dims check_dataset_strategy preprocess_num_proc eval_sample words gradient_checkpointing_kwargs logging_dir "
      "overlong_filter steps_per_generation importance_sampling_* attention_backend lr_warmup_fraction no_save_* "
      "multi_turn_scheduler move_model_batches min_lr max_turns colocate_groups advantage_estimator gkd_* finetune "
      "cross_entropy_* log_* gradient_accumulation_fusion async_generate use_gym_env gym_env scale_rewards train_iters "
      "chord_* fipo_* delta ENV.* kl_in_reward top_entropy_quantile tau_* moe_* merge_lora generation_batch_size "
      "center_rewards_coefficient lmbda seq_kd num_ppo_epochs whiten_rewards kl_coef cliprange* vf_coef gamma lam "
      "num_mini_batches response_length num_sample_generations missing_eos_penalty local_rollout_forward_batch_size "
      "ref_model_* reward_model_* teacher_* max_model_len config save_strategy reward_template "
      "min_p cosine_* repetition_n_grams repetition_max_penalty completion_length_limit_scope max_resample_times soft_* "
      "advantage_reweight rlsd_* sdar_* real_tau num_generations_eval rollout_* off_policy_* f_divergence_type "
      "calculate_KL router_replay_mode skip_megatron_init vit_* do_sample eval_human acc_steps metric_warmup_step "
      "merge_lora_and_save push_hub_strategy train_dataset_mix_* self_cognition_sample gc_collect_after_offload "
      "enable_flattened_weight_sync port max_prompt_length use_loss_scale only_save_model "
      "tools_prompt eval_datasets eval_datasets_args multi_turn_func custom_train_dataset_path custom_val_dataset_path");
  rules.start = start_swift;
  rules.finish = finish_swift;
  rules.write = write_swift;
  rules.beside = {"gradient_accumulation_steps", "per_device_train_batch_size", "max_length", "model"};
  return rules;
}

}  // namespace snug::dialects
