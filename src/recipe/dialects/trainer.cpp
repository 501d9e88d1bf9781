// Hugging Face's TrainingArguments (src/transformers/training_args.py), which TRL, LLaMA-Factory and ms-swift inherit.

#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

void take_auto_batch(Reading& reading, const Entry& entry) {
  if (!reading.is_on("auto_find_batch_size")) return reading.ignore(entry);
  reading.touches(entry, "the batch is found by trying: snug fit knows the largest beforehand");
}

void take_trainer_steps(Reading& reading, const Entry& entry) { take_count(reading, entry); }

}  // namespace

void add_strategies(Rules& rules) {
  const std::vector<Row> rows = {
      {"save_strategy", "save_strategy"},
      {"eval_strategy", "eval_strategy"},
      {"evaluation_strategy", "eval_strategy"},
      {"load_best_model_at_end", "load_best_model_at_end"},
      {"metric_for_best_model", "metric_for_best_model"},
      {"greater_is_better", "greater_is_better"},
      {"early_stopping_patience", "early_stopping_patience"},
      {"early_stopping_threshold", "early_stopping_threshold"},
  };
  rules.rows.insert(rules.rows.end(), rows.begin(), rows.end());
}

void add_trainer(Rules& rules) {  // NOLINT(readability-function-size): a table
  const std::vector<Row> rows = {
      {"per_device_train_batch_size", "per_device_train_batch_size"},
      {"per_gpu_train_batch_size", "per_device_train_batch_size"},
      {"gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"learning_rate", "learning_rate"},
      {"lr_scheduler_type", "lr_scheduler_type"},
      {"lr_scheduler_kwargs", "lr_scheduler_kwargs", take_schedule_arguments},
      {"warmup_steps", "warmup_steps"},
      {"warmup_ratio", "warmup_ratio"},
      {"optim", "optim", take_optimizer},
      {"optim_args", "optim_args", take_optimizer_arguments},
      {"weight_decay", "weight_decay"},
      {"adam_beta1", "adam_beta1"},
      {"adam_beta2", "adam_beta2"},
      {"adam_epsilon", "adam_epsilon"},
      {"max_grad_norm", "max_grad_norm"},
      {"bf16", "bf16", take_bf16},
      {"fp16", "fp16"},
      {"gradient_checkpointing", "gradient_checkpointing", take_checkpointing},
      {"activation_checkpointing", "gradient_checkpointing", take_checkpointing},
      {"max_steps", "max_steps", take_trainer_steps},
      {"num_train_epochs", "num_train_epochs"},
      {"save_steps", "save_steps", take_trainer_steps},
      {"eval_steps", "eval_steps", take_trainer_steps},
      {"eval_on_start", "eval_on_start"},
      {"logging_steps", "logging_steps", take_trainer_steps},
      {"save_total_limit", "save_total_limit"},
      {"save_only_model", "save_only_model"},
      {"seed", "seed"},
      {"neftune_noise_alpha", "neftune_noise_alpha"},
      {"output_dir", "output_dir"},
      {"logging_dir", "logging_dir"},
      {"resume_from_checkpoint", "resume_from_checkpoint"},
      {"overwrite_output_dir", "overwrite_output_dir"},
      {"report_to", "report_to", take_report},
      {"per_device_eval_batch_size", "", take_eval_batch},
      {"per_gpu_eval_batch_size", "", take_eval_batch},
      {"deepspeed", "", take_deepspeed},
      {"fsdp", "", take_fsdp},
      {"fsdp_config", "", take_fsdp_config},
      {"use_liger_kernel", "", take_on},
      {"auto_find_batch_size", "", take_auto_batch},
      {"model_name_or_path", "model", take_model},
  };
  rules.rows.insert(rules.rows.end(), rows.begin(), rows.end());
  add_strategies(rules);
  const std::vector<Touch> touches = {
      {"label_smoothing_factor", "smoothed labels need the logits whole"},
      {"pre_seq_len", "a prefix is trained (P-Tuning v2), not the model, which is planned"},
      {"num_virtual_tokens", "a prompt is trained, not the model, which is planned"},
      {"activation_offloading", "activations go to host memory"},
      {"optim_target_modules", "the optimizer works on projections of some modules' gradients"},
      {"torch_compile", "what the compiler fuses is never stored, and its buffers are its own"},
      {"torch_compile_backend", "see torch_compile", "", "torch_compile"},
      {"torch_compile_mode", "see torch_compile", "", "torch_compile"},
      {"parallelism_config", "tensors are cut over devices"},
      {"use_cpu", "the model is trained on the CPU"},
      {"predict_with_generate", "evaluation generates text and keeps keys and values"},
      {"fsdp_transformer_layer_cls_to_wrap", "FSDP over several devices"},
      {"fsdp_min_num_params", "FSDP over several devices"},
      {"adafactor", "another optimizer: optim says which"},
  };
  rules.touches.insert(rules.touches.end(), touches.begin(), touches.end());
  rules.ignored.emplace_back(
      "gradient_checkpointing_kwargs activation_checkpointing_kwargs average_tokens_across_devices "
      "bf16_full_eval fp16_full_eval tf32 liger_kernel_config use_cache torch_empty_cache_steps logging_strategy "
      "logging_first_step log_on_each_node logging_nan_inf_filter include_num_input_tokens_seen include_tokens_per_second "
      "log_level log_level_replica disable_tqdm run_name project trackio_* eval_delay "
      "prediction_loss_only eval_do_concat_batches eval_use_gather_object eval_accumulation_steps "
      "include_for_metrics "
      "include_inputs_for_metrics batch_eval_metrics save_on_each_node save_safetensors "
      "enable_jit_checkpoint push_to_hub push_to_hub_* hub_* "
      "ignore_data_skip restore_callback_states_from_checkpoint full_determinism data_seed jit_mode_eval use_ipex "
      "accelerator_config dataloader_* remove_unused_columns label_names train_sampling_strategy length_column_name "
      "group_by_length ddp_* debug skip_memory_metrics do_train do_eval do_predict local_rank fp16_opt_level fp16_backend "
      "half_precision_backend no_cuda use_mps_device xpu_backend tpu_num_cores tpu_metrics_debug past_index torchdynamo "
      "ray_scope mp_parameters split_batches dispatch_batches tokenizer_name_or_path tokenizer_name trust_remote_code "
      "cache_dir token use_auth_token hf_token wandb_* mlflow_* swanlab_* comet_* low_cpu_mem_usage use_fast_tokenizer "
      "sortish_sampler generation_max_length generation_num_beams "
      "generation_config overwrite_cache preprocessing_num_workers model_revision use_legacy_prediction_loop");
}

}  // namespace snug::dialects
