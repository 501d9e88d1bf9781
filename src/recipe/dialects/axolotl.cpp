// axolotl: src/axolotl/utils/schemas (AxolotlInputConfig and the classes it inherits, 2026-07).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// schemas: micro_batch_size 1, gradient_accumulation_steps 1, sequence_len 512 (config.py, training.py), sample_packing
// none, gradient_checkpointing False, optimizer adamw_torch_fused, lr_scheduler cosine, num_epochs 1, val_set_size 0,
// bf16 auto; adapter none trains every weight; lora_r none is PEFT's 8, lora_target_modules none PEFT's own choice.
void start_axolotl(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "1");
  reading.assume("gradient_accumulation_steps", "1");
  reading.assume("max_length", "512");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "false");
  reading.assume("optim", "adamw_torch_fused");
  reading.assume("lr_scheduler_type", "cosine");
  reading.assume("num_train_epochs", "1");
  reading.assume("bf16", "true");
  reading.assume("train_on_inputs", "false");
}

void take_adapter(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "lora" || word == "qlora") return reading.set(entry, "method", "lora");
  if (means_off(word)) return reading.set(entry, "method", "full");
  reading.touches(entry, fmt::format("the adapter '{}' is not planned: lora is", word.substr(0, 40)));
  reading.decide("method", "lora");
}

void take_plugins(Reading& reading, const Entry& entry) {
  for (const std::string& plugin : entry.values) {
    const std::string_view name = std::string_view(plugin).substr(plugin.rfind('.') + 1);
    if (name != "LigerPlugin" && name != "CutCrossEntropyPlugin" && name != "SpectrumPlugin" && name != "LMEvalPlugin" &&
        name != "SwanLabPlugin")
      return reading.touches(entry, fmt::format("what {} changes is not planned", name.substr(0, 60)));
  }
  reading.understood(entry, "scores and logits are never kept whole");
}

void take_target_linear(Reading& reading, const Entry& entry) {
  reading.understood(entry, means_off(entry.text()) ? "" : "sets lora_target_modules: all-linear");
}

// Of a list of data sets, the path of each.
void take_datasets(Reading& reading, const Entry& entry) {
  const bool trains = entry.path == "datasets" || entry.path == "pretraining_dataset";
  for (const Entry& inside : reading.document().entries)
    if (trains && inside.path.starts_with(entry.path + ".") && inside.leaf() == "path") reading.data(inside.text());
  if (entry.path == "pretraining_dataset") {
    if (entry.kind == EntryKind::scalar) reading.data(entry.text());
    reading.result().stage = "pt";
  }
  reading.ignore(entry);
}

void take_eager(Reading& reading, const Entry& entry) {
  if (means_off(entry.text())) return reading.ignore(entry);
  reading.touches(entry, "eager attention keeps whole matrices of scores");
}

void take_eval_length(Reading& reading, const Entry& entry) {
  int64_t length = 0;
  const std::string& text = entry.text();
  std::from_chars(text.data(), text.data() + text.size(), length);
  reading.result().eval_length = std::max<int64_t>(0, length);
  reading.touches(entry, "evaluation in another length; the plan evaluates in training's");
}

// rl is the stage; the block `trl` has a meaning only with it.
void take_rl_block(Reading& reading, const Entry& entry) {
  if (!reading.is_on("rl")) return reading.ignore(entry);
  reading.touches(entry, "generation and rewards beside the trained model");
}

void finish_axolotl(Reading& reading) {
  // adapter: qlora is LoRA; what is quantized load_in_4bit says (validation demands it).
  if (reading.value("adapter") == "qlora" && !reading.is_off("load_in_4bit")) reading.decide("load_in_4bit", "true");
  const bool lora = reading.recipe().method == Method::lora;
  if (!lora && reading.recipe().quantize.any()) {
    reading.note("load_in_4bit and load_in_8bit quantize only below an adapter: planned without");
    reading.decide("load_in_4bit", "false");
    reading.decide("load_in_8bit", "false");
  }
  // load_adapter adds every linear to the modules named (loaders/adapter.py).
  auto& targets = reading.recipe().lora.target_modules;
  if (reading.is_on("lora_target_linear")) {
    for (const std::string& name : targets)
      if (name == "embed_tokens" || name == "lm_head")
        reading.note(
            fmt::format("{} is trained whole where lora_modules_to_save names it; an adapter on it is not planned", name));
    reading.decide("lora_target_modules", "all-linear");
  }
  std::erase_if(targets, [&](const std::string& name) {
    const auto& whole = reading.recipe().lora.modules_to_save;
    return std::find(whole.begin(), whole.end(), name) != whole.end();
  });
  if (!lora) reading.recipe().lora.modules_to_save.clear();
  // Full fine-tuning loads the weights in bf16 and keeps no other copy.
  if (!lora && reading.recipe().bf16) reading.decide("master_weights", "false");
  // batch_size is the product; accumulation follows (utils/config: normalize_config).
  if (reading.is_on("batch_size") && !reading.has("gradient_accumulation_steps")) {
    int64_t whole = 0;
    const std::string text = reading.value("batch_size");
    std::from_chars(text.data(), text.data() + text.size(), whole);
    reading.decide("gradient_accumulation_steps", std::to_string(std::max<int64_t>(1, whole / reading.recipe().batch)));
  }
  if (reading.result().eval_batch == 0) reading.result().eval_batch = reading.recipe().batch;
}

void take_batch_size(Reading& reading, const Entry& entry) {
  reading.understood(entry, "micro_batch_size times gradient_accumulation_steps");
}

bool write_axolotl(const Document& document, const Wanted& wanted, const RecipeChange& change,
                   std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  if (change.key == "load_in_4bit" || change.key == "load_in_8bit") {
    if (wanted.recipe.method == Method::full) return true;  // it quantizes only below an adapter
    const bool on = change.value == "true", four = change.key == "load_in_4bit";
    put(change.key, change.value);
    const Entry* adapter = document.find("adapter");
    const bool q = adapter && adapter->text() == "qlora";
    if (four && on && !q) put("adapter", "qlora");
    if (four && !on && q) put("adapter", "lora");
    return true;
  }
  if (change.key == "method") {
    put("adapter", change.value == "full" ? "" : change.value);
    return true;
  }
  if (change.key == "optim") {
    if (change.value == "adamw_8bit") return put("optimizer", "adamw_bnb_8bit"), true;
    if (change.value == "adamw_bf16_states") return true;
  }
  if (change.key == "lora_target_modules" && change.value == "all-linear") return put("lora_target_linear", "true"), true;
  if (change.key == "gradient_checkpointing") {
    put("gradient_checkpointing", change.value);
    for (const char* name : {"fsdp_config.fsdp_activation_checkpointing", "fsdp_config.activation_checkpointing"})
      if (change.value == "false" && document.has(name)) put(name, "false");
    return true;
  }
  return false;
}

// ---- Whose file it is

bool is_axolotl(const Document& document) {
  if (!document.has("base_model")) return false;
  return count_of_keys(document, {"datasets", "pretraining_dataset", "sequence_len", "micro_batch_size", "sample_packing",
                                  "val_set_size", "num_epochs", "rl", "flash_attention", "adapter", "dataset_prepared_path",
                                  "chat_template", "reward_model", "process_reward_model", "special_tokens",
                                  "processor_type", "tokenizer_type"}) >= 2;
}

// Beyond doubt, whatever a launcher's own keys beside them are called.
bool is_surely_axolotl(const Document& document) {
  return document.has("base_model") &&
         count_of_keys(document, {"datasets", "sequence_len", "micro_batch_size", "num_epochs", "sample_packing"}) >= 3;
}

Claim claims_axolotl(const Document& document) {
  if (document.syntax == Syntax::shell) return script_says(document, "axolotl") ? Claim::likely : Claim::none;
  if (document.syntax != Syntax::yaml) return Claim::none;  // it reads nothing else
  return is_surely_axolotl(document) ? Claim::certain : is_axolotl(document) ? Claim::sure : Claim::none;
}

}  // namespace

Rules axolotl_rules() {  // NOLINT(readability-function-size): a table
  Rules rules;
  rules.name = "axolotl";
  rules.claims = claims_axolotl;
  rules.tools = {{.program = "axolotl", .verbs = {"train"}, .module = "axolotl.cli.train"}};
  rules.evaluation_batch = "eval_batch_size";
  rules.frames = {"axolotl"};
  rules.rows = {
      {"base_model", "model", take_model},
      {"adapter", "method", take_adapter},
      {"load_in_8bit", "load_in_8bit"},
      {"load_in_4bit", "load_in_4bit"},
      {"sequence_len", "max_length"},
      {"sample_packing", "packing"},
      {"micro_batch_size", "per_device_train_batch_size"},
      {"gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"batch_size", "", take_batch_size},
      {"eval_batch_size", "", take_eval_batch},
      {"eval_sequence_len", "", take_eval_length},
      {"num_epochs", "num_train_epochs"},
      {"max_steps", "max_steps", take_count},
      {"optimizer", "optim", take_optimizer},
      {"optim_args", "optim_args", take_optimizer_arguments},
      {"lr_scheduler", "lr_scheduler_type"},
      {"lr_scheduler_kwargs", "lr_scheduler_kwargs", take_schedule_arguments},
      {"learning_rate", "learning_rate"},
      {"warmup_steps", "warmup_steps"},
      {"warmup_ratio", "warmup_ratio"},
      {"weight_decay", "weight_decay"},
      {"max_grad_norm", "max_grad_norm"},
      {"adam_beta1", "adam_beta1"},
      {"adam_beta2", "adam_beta2"},
      {"adam_epsilon", "adam_epsilon"},
      {"lora_r", "lora_r"},
      {"lora_alpha", "lora_alpha"},
      {"lora_dropout", "lora_dropout"},
      {"lora_target_modules", "lora_target_modules", take_targets},
      {"lora_target_linear", "", take_target_linear},
      {"lora_modules_to_save", "lora_modules_to_save"},
      {"peft_use_dora", "use_dora"},
      {"peft_use_rslora", "use_rslora"},
      {"bf16", "bf16", take_bf16},
      {"bfloat16", "bf16", take_bf16},
      {"fp16", "fp16"},
      {"float16", "fp16"},
      {"torch_dtype", "bf16", take_dtype},
      {"gradient_checkpointing", "gradient_checkpointing", take_checkpointing},
      {"tiled_mlp", "tiled_mlp"},
      {"tiled_mlp_num_shards", "tiled_mlp_num_shards"},
      {"train_on_inputs", "train_on_inputs"},
      {"val_set_size", "val_size"},
      {"seed", "seed"},
      {"neftune_noise_alpha", "neftune_noise_alpha"},
      {"noisy_embedding_alpha", "neftune_noise_alpha"},
      {"output_dir", "output_dir"},
      {"save_steps", "save_steps", take_count},
      {"eval_steps", "eval_steps", take_count},
      {"logging_steps", "logging_steps", take_count},
      {"save_total_limit", "save_total_limit"},
      {"save_only_model", "save_only_model"},
      {"resume_from_checkpoint", "resume_from_checkpoint"},
      {"datasets", "", take_datasets},
      {"test_datasets", "", take_datasets},
      {"pretraining_dataset", "", take_datasets},
      {"rl", "", take_stage},
      {"trl", "", take_rl_block},
      {"plugins", "", take_plugins},
      {"deepspeed", "", take_deepspeed},
      {"fsdp", "", take_fsdp},
      {"fsdp_config", "", take_fsdp_config},
      {"attn_implementation", "", take_attention},
      {"eager_attention", "", take_eager},
      {"use_liger_kernel", "", take_on},
      {"cut_cross_entropy", "", take_on},
      {"chunked_cross_entropy", "", take_on},
      {"liger_*", "", take_on},
      {"auto_find_batch_size", "",
       [](Reading& reading, const Entry& entry) {
         if (means_off(entry.text())) return reading.ignore(entry);
         reading.touches(entry, "the batch is found by trying: snug fit knows the largest beforehand");
       }},
  };
  add_strategies(rules);
  rules.touches = {
      {"activation_offloading", "activations go to host memory"},
      {"layer_offloading", "weights go to host memory"},
      {"expert_offload", "experts go to host memory"},
      {"expert_offload_*", "see expert_offload", "", "expert_offload"},
      {"quantize_moe_experts", "experts in 4 bits besides the linears"},
      {"moe_*", "experts of a kernel's own"},
      {"gptq", "a checkpoint in GPTQ"},
      {"model_quantization_config*", "quantized by other rules than bitsandbytes'"},
      {"bnb_config_kwargs", "quantized by other settings"},
      {"quantization", "quantized after training"},
      {"qat", "weights are rounded in training and kept twice"},
      {"nonexpert_quantization", "quantized by other rules than bitsandbytes'"},
      {"fp8", "products in fp8 keep copies of weights and activations"},
      {"relora*", "adapters are merged and begun anew, with their states"},
      {"jagged_restart_*", "adapters are begun anew"},
      {"lisa_*", "other layers are trained every few steps"},
      {"unfrozen_parameters", "part of the weights are trained"},
      {"spectrum_*", "part of the weights are trained"},
      {"qgalore_*", "the optimizer works on projections of gradients"},
      {"optim_target_modules", "the optimizer works on projections of some modules' gradients"},
      {"lora_rank_pattern", "ranks of single modules"},
      {"lora_target_parameters", "adapters on single parameters"},
      {"peft_layers_to_transform", "adapters in some layers only"},
      {"peft_layers_pattern", "adapters in some layers only"},
      {"peft_layer_replication", "layers stand in the model several times"},
      {"peft_trainable_token_indices", "rows of the embedding are trained"},
      {"peft.*", "quantization of the adapter's weights"},
      {"peft", "quantization of the adapter's weights"},
      {"loftq_config", "adapters from the rounding error of the weights"},
      {"lora_on_cpu", "the adapter is loaded on the CPU"},
      {"loraplus_lr_ratio", "two groups of parameters in the optimizer"},
      {"use_mora", "another adapter than LoRA"},
      {"mora*", "another adapter than LoRA"},
      {"reward_model", "two rows for each example and a head of one value"},
      {"process_reward_model", "a head of two values"},
      {"kd_*", "distillation: logits of a teacher"},
      {"ebft", "generation beside the trained model"},
      {"diffusion*", "another objective"},
      {"tiled_mlp_use_original_mlp", "see tiled_mlp", "", "tiled_mlp"},
      {"sequence_parallel_degree", "sequences are cut over devices", "1"},
      {"context_parallel_size", "sequences are cut over devices", "1"},
      {"tensor_parallel_size", "weights are cut over devices", "1"},
      {"dp_shard_size", "weights are cut over devices", "1"},
      {"dp_replicate_size", "weights stand on several devices", "1"},
      {"expert_parallel_size", "experts are cut over devices", "1"},
      {"torch_compile", "what the compiler fuses is never stored, and its buffers are its own", "auto"},
      {"torch_compile_*", "see torch_compile", "", "torch_compile"},
      {"resize_token_embeddings_to_32x", "the embedding grows to a multiple of 32 rows"},
      {"shrink_embeddings", "the embedding loses rows"},
      {"s2_attention", "attention in shifted windows"},
      {"batch_flattening", "rows of a batch become one sequence without padding"},
      {"processor_type", "images beside text"},
      {"image_size", "images beside text"},
      {"freeze_mm_modules", "images beside text"},
      {"selective_checkpointing*", "some activations are kept"},
      {"recompute_layer_types", "some activations are kept"},
      {"gpu_memory_limit", "a limit from outside"},
      {"max_memory", "weights are dealt out over devices"},
      {"device_map", "weights are dealt out over devices", "auto"},
      {"num_labels", "a head of its own"},
      {"embedding_lr", "a group of its own in the optimizer"},
      {"lr_groups", "groups of their own in the optimizer"},
      {"vllm", "generation on the same device"},
      {"use_kernels", "kernels of its own for experts"},
      {"use_scattermoe", "kernels of its own for experts"},
      {"use_sonicmoe", "kernels of its own for experts"},
      {"use_dsv4_kernels", "kernels of its own for experts"},
      {"use_glm_dsa_kernels", "kernels of its own for attention"},
      {"expert_parallel_*", "experts are cut over devices", "", "expert_parallel_size"},
      {"fp8_*", "products in fp8 keep copies of weights and activations", "", "fp8"},
      {"llmcompressor*", "quantized or pruned in training"},
      {"use_onebitllms", "weights of one bit"},
      {"dsv4_*", "quantized by other rules than bitsandbytes'"},
      {"nvfp4_*", "quantized by other rules than bitsandbytes'"},
      {"reinit_weights", "every weight starts anew"},
      {"hatchery*", "trained on another's machines"},
      {"nemo_gym_*", "generation and rewards beside the trained model"},
      {"gemma4_fp8_nonexpert", "weights in fp8"},
      {"gemma4_nf4_nonexpert", "quantized by other rules than bitsandbytes'"},
      {"dense_mixer", "every expert sees every token"},
      {"grokfast_*", "a mean of past gradients beside them"},
      {"float32", "weights in fp32"},
  };
  rules.ignored = {
      "model_type tokenizer_* base_model_config is_*_derived_model is_llama_derived_model is_mistral_derived_model "
      "is_qwen_derived_model is_falcon_derived_model trust_remote_code revision_of_model type_of_model "
      "overrides_of_model_* special_tokens* tokens added_tokens_overrides strict hf_use_auth_token push_dataset_to_hub "
      "hub_* shuffle_* dataset_* data_seed chat_template chat_template_* default_system_message lora_model_dir "
      "lora_fan_in_fan_out eval_sample_packing pad_to_sequence_len sample_packing_* multipack_* max_packed_sequence_len "
      "min_sample_len excess_length_strategy pad_to_multiple_of group_by_length tf32 local_rank "
      "xformers_attention flash_attention flash_attn_* flash_optimum sdp_attention flex_attn_* flex_attention* "
      "sage_attention "
      "loss_watchdog_* evals_per_epoch saves_per_epoch eval_table_size eval_max_new_tokens eval_table_max_new_tokens "
      "eval_causal_lm_metrics do_causal_lm_eval do_bench_eval bench_* "
      "save_safetensors save_first_step debug wandb_* mlflow_* hf_mlflow_* comet_* use_wandb use_mlflow "
      "use_comet use_swanlab swanlab_* use_tensorboard use_trackio trackio_* use_otel_metrics otel_* dataloader_* gc_steps "
      "gc_collect_steps gradient_checkpointing_kwargs cosine_* lr_div_factor lr_quadratic_warmup "
      "roles_to_train train_on_eos skip_prepare_dataset remove_unused_columns "
      "auto_resume_from_checkpoints resume_from_checkpoints ddp ddp_* "
      "accelerator_config fsdp_version fsdp_final_state_dict_type deepcompile low_cpu_mem_usage lora_mlp_kernel "
      "lora_qkv_kernel lora_o_kernel lora_embedding_kernel embeddings_skip_upcast peft_autocast_adapter_dtype "
      "peft_init_lora_weights peft_ensure_weight_tying lora_alpha_pattern.* include_tokens_per_second include_tkps "
      "profiler_* torch_empty_cache_steps total_num_tokens total_supervised_tokens world_size use_ray ray_* "
      "resources_per_worker beta rl_beta dpo_* orpo_alpha rpo_alpha simpo_gamma kto_* cpo_alpha max_prompt_len "
      "precompute_ref_log_probs center_rewards_coefficient adam_beta3 adam_epsilon2 fix_untrained_tokens "
      "loraplus_lr_embedding lora_alpha_pattern image_resize_algorithm streaming streaming_* pretrain_multipack_* "
      "axolotl_config_path image vllm_* gradio_* merge_lora merge_method device rope_scaling fp32_norms fp32_norm_classes "
      "experts_implementation experimental_skip_move_to_device eot_tokens mean_resizing_embeddings trainer_cls "
      "sequence_len_* use_pose pose_* ring_attn_func heads_k_stride scaling_softmax* save_* generate_samples "
      "generation_* lm_eval_* processor_kwargs config num_processes torchdistx_path gptq_* llama4_linearized_experts "
      "model_config.* fused_attn_kernel eaft_* use_eaft cls_model_config curriculum_sampling "
      "gemma4_hybrid_attn_impl eta_min adam_eps qlora_sharded_model_loading num_dataset_shards_to_save "
      "pretraining_sample_concatenation large_head_attention sdpa_varlen chunked_cross_entropy_num_chunks is_preprocess "
      "preprocess_iterable num_generation_samples capabilities env_capabilities embedding_lr_scale dion_* role_boundaries "
      "expert_backend dynamic_checkpoint dynamic_checkpoint.* base_model_ignore_patterns words launcher"};
  rules.start = start_axolotl;
  rules.finish = finish_axolotl;
  rules.write = write_axolotl;
  rules.beside = {"gradient_accumulation_steps", "micro_batch_size", "sequence_len", "learning_rate", "base_model"};
  return rules;
}

}  // namespace snug::dialects
