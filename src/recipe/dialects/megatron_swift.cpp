// Megatron-SWIFT, ms-swift's second trainer: swift/megatron/arguments (2026-08; `megatron sft`). Its keys are ms-swift's own
// beside those of Megatron-LM, which count micro-batches and the whole batch of a step.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/checked.h"
#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// megatron_args.py: tuner_type full, micro_batch_size 1, global_batch_size 16, recompute_granularity selective (scores of
// attention alone, which are never kept whole here), bf16 from the checkpoint, weight_decay 0.1, adam_beta2 0.95,
// lr_decay_style cosine, lora_rank 8, lora_alpha 32, lora_dropout 0.05, target_modules all-linear; lr 1e-5, or 1e-4 (lora).
// Weights in bf16 beside states, gradients and a copy in fp32.
void start_megatron_swift(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "1");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "false");
  reading.assume("bf16", "true");
  reading.assume("lora_r", "8");
  reading.assume("lora_alpha", "32");
  reading.assume("lora_dropout", "0.05");
  reading.assume("lora_target_modules", "all-linear");
  reading.assume("lr_scheduler_type", "cosine");
  reading.assume("learning_rate", "1e-5");
  reading.assume("adam_beta2", "0.95");
  reading.assume("weight_decay", "0.1");
}

// A checkpoint in Megatron's own form, which carries its model's name: "Qwen3-8B-mcore".
void take_mcore(Reading& reading, const Entry& entry) {
  std::string name = entry.text();
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  name = name.substr(name.rfind('/') + 1);
  const size_t end = name.rfind("-mcore");
  if (end != std::string::npos && end > 0) reading.model(name.substr(0, end));
  reading.model(name);
  reading.understood(entry, "where the weights are");
}

void take_megatron_batch(Reading& reading, const Entry& entry) {
  reading.understood(entry, "micro_batch_size times accumulation and devices");
}

void take_recompute(Reading& reading, const Entry& entry) {
  reading.set(entry, "gradient_checkpointing", entry.text() == "full" ? "true" : "false");
}

void take_recompute_method(Reading& reading, const Entry& entry) {
  if (entry.text() != "block" || reading.value("recompute_granularity") != "full") return reading.understood(entry);
  reading.touches(entry, "some blocks are recomputed: planned as all");
}

void take_recompute_layers(Reading& reading, const Entry& entry) {
  const bool in_one = reading.value("recompute_method") == "block" || count_of(entry.text()) <= 1;
  if (in_one || reading.value("recompute_granularity") != "full") return reading.understood(entry);
  reading.touches(entry, "several blocks are recomputed in one piece: planned one by one");
}

// Megatron's own names of modules; a list may hold ms-swift's words too.
void take_mcore_modules(Reading& reading, const Entry& entry, std::string_view ours) {
  constexpr Saying kModules[] = {
      {"linear_qkv", "q_proj,k_proj,v_proj"}, {"linear_proj", "o_proj"},
      {"linear_fc1", "gate_proj,up_proj"},    {"linear_fc2", "down_proj"},
      {"word_embeddings", "embed_tokens"},    {"output_layer", "lm_head"},
  };
  std::vector<std::string> names;
  for (const std::string& value : entry.values) {
    const std::string_view known = ours_of(kModules, value);
    names.emplace_back(known.empty() ? std::string_view(value) : known);
  }
  Entry named = entry;
  named.values = {fmt::format("{}", fmt::join(names, ","))};
  ours == "lora_target_modules" ? take_adapted(reading, named) : reading.set(entry, ours, named.values[0]);
}

void take_mcore_targets(Reading& reading, const Entry& entry) { take_mcore_modules(reading, entry, "lora_target_modules"); }

void take_mcore_saved(Reading& reading, const Entry& entry) { take_mcore_modules(reading, entry, "lora_modules_to_save"); }

void take_optimizer_word(Reading& reading, const Entry& entry) {
  if (entry.text() == "adam") return reading.set(entry, "optim", "adamw_torch");
  if (entry.text() == "sgd") return reading.set(entry, "optim", "sgd");
  reading.touches(entry, fmt::format("the optimizer {} is not planned: planned as AdamW", entry.text().substr(0, 40)));
}

void take_steps(Reading& reading, const Entry& entry) {
  const std::string_view name = entry.leaf();
  const char* ours = name == "save_interval"   ? "save_steps"
                     : name == "eval_interval" ? "eval_steps"
                     : name == "log_interval"  ? "logging_steps"
                                               : "max_steps";
  if (count_of(entry.text()) < 1) return reading.ignore(entry);
  reading.set(entry, ours, entry.text());
}

// Devices that hold one copy of the model between them, at least 1.
int64_t devices_of_one_copy(const Reading& reading) {
  int64_t product = 1;
  for (const char* name : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"}) {
    const int64_t size = count_of(reading.value(name));
    if (size > 1 && size < 10000 && product < 10000) product *= size;
  }
  return product;
}

int64_t copies(const Reading& reading, int64_t gpus) { return std::max<int64_t>(1, gpus / devices_of_one_copy(reading)); }

void finish_megatron_swift(Reading& reading) {
  Recipe& recipe = reading.recipe();
  const auto& command = reading.document().command;
  if (command.size() == 2 && command[1] == "pt") reading.result().stage = "pt";
  if (recipe.fp16) recipe.bf16 = false;
  const int64_t given = count_of(reading.value("global_batch_size"));
  const int64_t whole = given > 0 ? given : 16;
  const int64_t one = std::clamp<int64_t>(recipe.batch, 1, whole) * copies(reading, reading.result().gpus);
  const std::string accumulation = fmt::format("{}", std::max<int64_t>(1, whole / std::max<int64_t>(1, one)));
  given > 0 ? reading.decide("gradient_accumulation_steps", accumulation)
            : reading.assume("gradient_accumulation_steps", accumulation);
  if (reading.result().gpus == 0 && devices_of_one_copy(reading) > 1)
    reading.note("how many devices there are is not said: accumulation is reckoned for one copy of the model");
  if (!reading.has("max_length")) reading.note("no max_length: the model's own limit holds there; planned shorter");
  if (recipe.method == Method::full) recipe.lora.modules_to_save.clear();
  reading.result().eval_batch = recipe.batch;
}

bool write_megatron_swift(const Document& document, const Wanted& wanted, const RecipeChange& change,
                          std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  const bool batch = change.key == "per_device_train_batch_size";
  if (batch) put("micro_batch_size", change.value);
  if (batch || change.key == "gradient_accumulation_steps") {
    int64_t tiles = 1;
    for (const char* name : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"})
      if (const Entry* entry = document.find(name))
        if (const int64_t size = count_of(entry->text()); size > 1 && size < 10000 && tiles < 10000) tiles *= size;
    const int64_t several = std::max<int64_t>(1, wanted.read.gpus / tiles);
    const int64_t whole = checked_mul(checked_mul(wanted.recipe.batch, wanted.recipe.accumulation), several);
    put("global_batch_size", fmt::format("{}", whole));
    return true;
  }
  if (change.key == "gradient_checkpointing") {
    put("recompute_granularity", change.value == "true" ? "full" : "selective");
    if (change.value == "true" && !document.has("recompute_method")) {
      put("recompute_method", "uniform");
      put("recompute_num_layers", "1");
    }
    return true;
  }
  if (change.key == "optim" || change.key == "load_in_4bit" || change.key == "load_in_8bit" ||
      change.key == "master_weights")
    return true;
  if (change.key == "method" && !document.has("tuner_type"))
    return put("train_type", change.value == "full" ? "full" : "lora"), true;
  return false;
}

// ---- Whose file it is

bool is_megatron_swift(const Document& document) {
  return has_any(document, {"micro_batch_size", "global_batch_size"}) &&
         has_any(document, {"model", "load", "mcore_model"}) &&
         has_any(document, {"recompute_granularity", "tensor_model_parallel_size", "expert_model_parallel_size"});
}

Claim claims_megatron_swift(const Document& document) { return is_megatron_swift(document) ? Claim::sure : Claim::none; }

}  // namespace

Rules megatron_swift_rules() {  // NOLINT(readability-function-size): a table
  Rules rules = swift_rules();
  rules.name = "Megatron-SWIFT";
  rules.claims = claims_megatron_swift;
  rules.tools = {{.program = "megatron", .verbs = {"sft", "pt", "rlhf"}}};
  rules.pytorch_trainer = "";
  const std::vector<Row> rows = {
      {"load", "", take_mcore},
      {"mcore_model", "", take_mcore},
      {"target_modules", "lora_target_modules", take_mcore_targets},
      {"modules_to_save", "lora_modules_to_save", take_mcore_saved},
      {"micro_batch_size", "per_device_train_batch_size"},
      {"global_batch_size", "", take_megatron_batch},
      {"seq_length", "max_length"},
      {"recompute_granularity", "gradient_checkpointing", take_recompute},
      {"recompute_method", "", take_recompute_method},
      {"recompute_num_layers", "", take_recompute_layers},
      {"optimizer", "optim", take_optimizer_word},
      {"lr", "learning_rate"},
      {"lr_decay_style", "lr_scheduler_type"},
      {"lr_warmup_iters", "warmup_steps"},
      {"lr_warmup_fraction", "warmup_ratio"},
      {"train_iters", "max_steps", take_steps},
      {"save_interval", "save_steps", take_steps},
      {"eval_interval", "eval_steps", take_steps},
      {"log_interval", "logging_steps", take_steps},
      {"max_epochs", "num_train_epochs"},
      {"clip_grad", "max_grad_norm"},
      {"adam_eps", "adam_epsilon"},
      {"save", "output_dir"},
      {"use_flash_attn", "", take_on},
      {"cross_entropy_loss_fusion", "", take_on},
  };
  rules.rows.insert(rules.rows.begin(), rows.begin(), rows.end());
  const std::vector<Touch> touches = {
      {"recompute_modules", "parts of blocks are recomputed", "core_attn"},
      {"moe_layer_recompute", "experts are recomputed"},
      {"mhc_recompute_layer_num", "parts of blocks are recomputed"},
      {"virtual_pipeline_model_parallel_size", "layers are dealt out over devices", "1"},
      {"expert_tensor_parallel_size", "experts are cut over devices", "1"},
      {"decoder_first_pipeline_num_layers", "layers are dealt out over devices"},
      {"decoder_last_pipeline_num_layers", "layers are dealt out over devices"},
      {"pipeline_model_parallel_layout", "layers are dealt out over devices"},
      {"use_megatron_fsdp", "weights are cut over devices"},
      {"data_parallel_sharding_strategy", "see use_megatron_fsdp", "no_shard", "use_megatron_fsdp"},
      {"optimizer_cpu_offload", "the optimizer's states go to host memory"},
      {"optimizer_offload_fraction", "see optimizer_cpu_offload", "", "optimizer_cpu_offload"},
      {"use_precision_aware_optimizer", "states and gradients in other dtypes"},
      {"main_grads_dtype", "gradients in another dtype", "fp32"},
      {"main_params_dtype", "the copy of the weights in another dtype", "fp32"},
      {"exp_avg_dtype", "states in another dtype", "fp32"},
      {"exp_avg_sq_dtype", "states in another dtype", "fp32"},
      {"fp8_format", "products in fp8 keep copies of weights and activations"},
      {"fp8_*", "see fp8_format", "", "fp8_format"},
      {"fp4_format", "products in fp4 keep copies of weights and activations"},
      {"fp4_*", "see fp4_format", "", "fp4_format"},
      {"mtp_num_layers", "layers that foresee more tokens"},
      {"moe_expert_capacity_factor", "experts drop tokens beyond their share"},
      {"moe_pad_expert_input_to_capacity", "experts are padded to their share"},
  };
  rules.touches.insert(rules.touches.begin(), touches.begin(), touches.end());
  rules.ignored.emplace_back(
      "masked_softmax_fusion bias_dropout_fusion bias_activation_fusion apply_rope_fusion gradient_accumulation_fusion "
      "cross_entropy_fusion_impl calculate_per_token_loss attention_softmax_in_fp32 manual_gc* data_sharding te_rng_tracker "
      "data_parallel_random_init mlp_padding_free lr_warmup_init lr_decay_iters lr_wsd_* weight_decay_incr_style "
      "start_weight_decay end_weight_decay sgd_momentum muon_* mcore_adapter no_load_* perform_initialization "
      "use_cpu_initialization async_save use_persistent_ckpt_worker dist_ckpt_* distrib_optim_* ddp_* account_for_* "
      "overlap_* batch_p2p_comm align_* cp_comm_type cp_partition_mode sequence_packing_scheduler tp_comm_overlap "
      "nccl_comm_warmup microbatch_group_size_per_vp_stage tensorboard_* wandb_* eval_iters apply_query_key_layer_scaling "
      "accumulate_allreduce_grads_in_fp32 mtp_* bridge_backend save_missing_weights max_shard_size dsa_* csa_* "
      "apply_dsa_kernel_fusion use_fused_mhc megatron_extra_kwargs language_model_only apply_wd_to_qk_layernorm "
      "linear_decoupled_in_proj num_workers decoder_* add_bias_linear use_distributed_optimizer optimizer_cuda_graph "
      "auto_detect_ckpt_format mcore_ref_* no_initialization adapter_load load_safetensors "
      "no_gradient_accumulation_fusion no_bias_* no_rope_fusion no_masked_softmax_fusion");
  rules.start = start_megatron_swift;
  rules.finish = finish_megatron_swift;
  rules.write = write_megatron_swift;
  rules.beside = {"micro_batch_size", "global_batch_size", "max_length", "model"};
  return rules;
}

}  // namespace snug::dialects
