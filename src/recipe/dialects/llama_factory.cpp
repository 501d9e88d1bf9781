// LLaMA-Factory: src/llamafactory/hparams (model_args, data_args, finetuning_args, training_args; 2026-08).

#include <fmt/format.h>

#include <algorithm>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// finetuning_args: finetuning_type lora, lora_rank 8, lora_target all, lora_dropout 0, stage sft; data_args: cutoff_len
// 2048, packing none; model_args: disable_gradient_checkpointing False (checkpointing.py: prepare_model_for_training,
// whatever TrainingArguments say), double_quantization True; TrainingArguments: per_device_train_batch_size 8. Without bf16
// and fp16 the weights are loaded in the dtype that suits the device (patcher.py: infer_optim_dtype), bf16 on today's.
void start_llama_factory(Reading& reading) {
  reading.assume("method", "lora");
  reading.assume("per_device_train_batch_size", "8");
  reading.assume("max_length", "2048");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "true");
  reading.assume("bf16", "true");
  reading.assume("lora_r", "8");
  reading.assume("lora_target_modules", "all-linear");
  reading.assume("train_on_inputs", "false");
  reading.result().eval_batch = 8;
}

void take_finetuning_type(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "lora" || word == "full") return reading.set(entry, "method", word);
  if (word == "freeze") {
    reading.touches(entry, "part of the layers are trained: planned as full, which needs more");
    return reading.decide("method", "full");
  }
  reading.touches(entry, fmt::format("'{}' is not planned: planned as lora", word.substr(0, 40)));
}

// TrainingArguments' own key switches nothing off: prepare_model_for_training has switched it on.
void take_trainer_checkpointing(Reading& reading, const Entry& entry) {
  if (!means_off(entry.text())) return reading.set(entry, "gradient_checkpointing", "true");
  reading.understood(entry, "has no effect: disable_gradient_checkpointing: true switches it off");
}

void take_disable_checkpointing(Reading& reading, const Entry& entry) {
  reading.set(entry, "gradient_checkpointing", means_off(entry.text()) ? "true" : "false");
}

void take_neat_packing(Reading& reading, const Entry& entry) {
  if (means_off(entry.text())) return reading.ignore(entry);
  reading.set(entry, "packing", "true");
}

void take_pure_bf16(Reading& reading, const Entry& entry) {
  if (means_off(entry.text())) return reading.ignore(entry);
  reading.set(entry, "bf16", "true");
  if (reading.recipe().method == Method::full) reading.decide("master_weights", "false");
}

void take_method(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "bnb" || word == "bitsandbytes" || !reading.is_on("quantization_bit")) return reading.understood(entry);
  reading.touches(entry, fmt::format("quantized by {}: planned as bitsandbytes", word.substr(0, 40)));
}

void take_shuffling(Reading& reading, const Entry& entry) {
  reading.set(entry, "shuffle", means_off(entry.text()) ? "true" : "false");
}

void finish_llama_factory(Reading& reading) {
  Recipe& recipe = reading.recipe();
  if (!reading.has("lora_alpha")) reading.assume("lora_alpha", fmt::format("{}", 2 * recipe.lora.r));  // __post_init__
  if (recipe.fp16) recipe.bf16 = false;
  if (reading.is_on("pure_bf16") && recipe.method == Method::full) recipe.master_weights = false;
  if (reading.is_on("quantization_bit") && reading.value("quantization_type") == "fp4")
    reading.decide("bnb_4bit_quant_type", "fp4");
  // data_args: packing is the default of continued pre-training alone.
  if (reading.result().stage == "pt" && !reading.has("packing")) reading.assume("packing", "true");
  if (recipe.method == Method::full) recipe.lora.modules_to_save.clear();
  if (recipe.method == Method::full && recipe.quantize.any()) recipe.quantize.in_4bit = recipe.quantize.in_8bit = false;
}

bool write_llama_factory(const Document& document, const Wanted& wanted, const RecipeChange& change,
                         std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  const bool on = change.value == "true";
  if (change.key == "load_in_4bit" || change.key == "load_in_8bit") {
    const bool four = change.key == "load_in_4bit";
    if (on) {
      put("quantization_bit", four ? "4" : "8");
    } else if ((four ? wanted.read.recipe.quantize.in_4bit : wanted.read.recipe.quantize.in_8bit) &&
               document.has("quantization_bit")) {
      out.push_back({"quantization_bit", "", true});
    }
    return true;
  }
  if (change.key == "gradient_checkpointing") {
    put("disable_gradient_checkpointing", on ? "false" : "true");
    if (!on && document.has("gradient_checkpointing")) put("gradient_checkpointing", "false");
    return true;
  }
  if (change.key == "master_weights") {
    if (change.value == "false") put("pure_bf16", "true");
    return true;
  }
  if (change.key == "lora_target_modules") {
    put("lora_target", change.value == "all-linear" ? "all" : change.value);
    return true;
  }
  if (change.key == "optim" && change.value == "adamw_bf16_states") return true;
  if (change.key == "optim" && change.value == "adamw_8bit") return put("optim", "adamw_8bit"), true;
  return false;
}

// ---- Whose file it is

// What LLaMA-Factory's file says with do_predict and without do_train.
bool only_predicts(const Document& document) {
  const auto on = [&](std::string_view name) {
    const Entry* entry = document.find(name);
    return entry && entry->kind == EntryKind::scalar && !means_off(entry->text());
  };
  return on("do_predict") && !on("do_train");
}

bool is_llama_factory(const Document& document) {
  if (only_predicts(document)) return false;
  if (!has_any(document, {"model_name_or_path", "adapter_name_or_path"})) return false;
  return has_any(document,
                 {"finetuning_type", "cutoff_len", "stage", "lora_target", "dataset_dir", "pure_bf16", "neat_packing"}) &&
         count_of_keys(document,
                       {"stage", "finetuning_type", "template", "dataset", "cutoff_len", "lora_target", "dataset_dir",
                        "do_train", "quantization_bit", "overwrite_cache", "plot_loss", "pure_bf16"}) >= 3;
}

Claim claims_llama_factory(const Document& document) { return is_llama_factory(document) ? Claim::sure : Claim::none; }

}  // namespace

Rules llama_factory_rules() {  // NOLINT(readability-function-size): a table
  Rules rules;
  rules.name = "LLaMA-Factory";
  rules.claims = claims_llama_factory;
  rules.tools = {{.program = "llamafactory-cli", .verbs = {"train"}, .pairs = true},
                 {.program = "lmf", .verbs = {"train"}, .pairs = true}};
  rules.frames = {"llamafactory", "LLaMA-Factory", "llmtuner"};
  rules.rows = {
      {"finetuning_type", "method", take_finetuning_type},
      {"stage", "", take_stage},
      {"template", "", take_template},
      {"quantization_bit", "load_in_4bit", take_quantization_bit},
      {"quantization_method", "", take_method},
      {"quantization_type", "bnb_4bit_quant_type"},
      {"double_quantization", "bnb_4bit_use_double_quant"},
      {"cutoff_len", "max_length"},
      {"early_stopping_steps", "early_stopping_patience"},
      {"lora_rank", "lora_r"},
      {"lora_alpha", "lora_alpha"},
      {"lora_dropout", "lora_dropout"},
      {"lora_target", "lora_target_modules", take_targets},
      {"additional_target", "lora_modules_to_save"},
      {"use_rslora", "use_rslora"},
      {"use_dora", "use_dora"},
      {"packing", "packing"},
      {"neat_packing", "packing", take_neat_packing},
      {"disable_gradient_checkpointing", "gradient_checkpointing", take_disable_checkpointing},
      {"gradient_checkpointing", "gradient_checkpointing", take_trainer_checkpointing},
      {"pure_bf16", "bf16", take_pure_bf16},
      {"flash_attn", "", take_attention},
      {"attn", "", take_attention},
      {"enable_liger_kernel", "", take_on},
      {"train_on_prompt", "train_on_inputs"},
      {"val_size", "val_size"},
      {"disable_shuffling", "shuffle", take_shuffling},
      {"dataset", "", take_data},
      {"eval_dataset", "", [](Reading& reading, const Entry& entry) { reading.ignore(entry); }},
  };
  rules.touches = {
      {"use_galore", "the optimizer works on projections of gradients"},
      {"galore_*", "see use_galore", "", "use_galore"},
      {"use_apollo", "the optimizer works on projections of gradients"},
      {"apollo_*", "see use_apollo", "", "use_apollo"},
      {"use_badam", "one block at a time is trained"},
      {"badam_*", "see use_badam", "", "use_badam"},
      {"use_muon", "another optimizer: one momentum for matrices"},
      {"use_adam_mini", "another optimizer: one second moment for each block"},
      {"use_unsloth", "Unsloth's own kernels and checkpoints"},
      {"use_unsloth_gc", "the blocks' inputs go to host memory"},
      {"use_llama_pro", "new blocks alone are trained"},
      {"mixture_of_depths", "tokens pass some blocks by"},
      {"shift_attn", "attention in shifted windows"},
      {"pissa_init", "adapters from the weights' singular values"},
      {"pissa_*", "see pissa_init", "", "pissa_init"},
      {"loraplus_lr_ratio", "two groups of parameters in the optimizer"},
      {"ref_model*", "a reference model beside the trained one"},
      {"reward_model*", "a reward model beside the trained one", "lora full api"},
      {"use_asft_loss", "a reference model beside the trained one"},
      {"upcast_layernorm", "norms in fp32"},
      {"upcast_lmhead_output", "logits in fp32"},
      {"resize_vocab", "the embedding grows"},
      {"add_tokens", "the embedding grows"},
      {"add_special_tokens", "the embedding grows"},
      {"new_special_tokens*", "the embedding grows"},
      {"fp8*", "products in fp8 keep copies of weights and activations", "auto"},
      {"use_kt", "experts on the CPU"},
      {"kt_*", "experts on the CPU", "", "use_kt"},
      {"use_mca", "Megatron's own trainer"},
      {"tensor_model_parallel_size", "weights are cut over devices", "1"},
      {"pipeline_model_parallel_size", "layers are dealt out over devices", "1"},
      {"expert_model_parallel_size", "experts are cut over devices", "1"},
      {"context_parallel_size", "sequences are cut over devices", "1"},
      {"sequence_parallel", "activations are cut over devices"},
      {"recompute_granularity", "Megatron's own recomputation"},
      {"recompute_method", "Megatron's own recomputation", "", "recompute_granularity"},
      {"recompute_num_layers", "Megatron's own recomputation", "", "recompute_granularity"},
      {"virtual_pipeline_model_parallel_size", "layers are dealt out over devices", "1"},
      {"use_distributed_optimizer", "the optimizer's states are cut over devices"},
      {"use_megatron_bridge", "Megatron's own trainer"},
      {"megatron_bridge_args", "Megatron's own trainer"},
      {"use_hyper_parallel", "tensors are cut over devices"},
      {"hyper_parallel_*", "tensors are cut over devices", "1"},
      {"rope_scaling", "another rotary scaling, for longer sequences"},
      {"moe_aux_loss_coef", "the router's logits are kept"},
      {"image_*", "images beside text"},
      {"video_*", "videos beside text"},
      {"audio_*", "sounds beside text"},
      {"crop_to_patches", "images beside text"},
      {"use_audio_in_video", "sounds beside text"},
      {"train_from_scratch", "every weight starts anew"},
      {"visual_inputs", "images beside text"},
      {"train_mm_proj_only", "part of the weights are trained"},
      {"name_module_trainable", "see finetuning_type"},
      {"num_layer_trainable", "see finetuning_type"},
      {"adapter_name_or_path", "several adapters may be loaded"},
  };
  add_trainer(rules);
  rules.ignored.emplace_back(
      "freeze_* oft_* module_dropout default_system tool_format dataset_dir media_dir data_shared_file_system "
      "max_samples split mix_strategy "
      "interleave_probs overwrite_cache preprocessing_* streaming buffer_size ignore_pad_token_for_loss "
      "eval_on_each_dataset tokenized_path mask_history enable_thinking preserve_thinking plot_loss compute_accuracy "
      "include_effective_tokens_per_second disable_gradient_checkpointing_kwargs adapter_folder "
      "split_special_tokens resize_vocab_* init_special_tokens use_reentrant_gc use_kv_cache use_cache use_v1_kernels "
      "infer_* vllm_* sglang_* export_* offload_folder ms_hub_token om_hub_token hf_hub_token print_param_status "
      "create_new_adapter loraplus_lr_embedding pref_* dpo_* kto_* ppo_* simpo_gamma ld_alpha use_dft_loss use_eaft_loss "
      "eaft_alpha asft_alpha use_swanlab use_ray ray_* master_addr master_port compute_dtype device_map model_max_length "
      "block_diag_attn quantization_device_map do_sample temperature top_p top_k num_beams max_length max_new_tokens "
      "repetition_penalty length_penalty skip_special_tokens profile_modules profiler_* enable_torch_profiler "
      "eval_num_beams predict_with_generate_* words overlap_* bias_activation_fusion apply_rope_fusion moe_* "
      "use_packed_sequences flash_attn_* dataset_info "
      "account_for_* masked_softmax_fusion cross_entropy_loss_fusion calculate_per_token_loss mixed_precision "
      "megatron_pretrained_checkpoint extra_config export_hf_on_finish placement_strategy resources_per_worker "
      "resources_per_worker.*");
  rules.start = start_llama_factory;
  rules.finish = finish_llama_factory;
  rules.write = write_llama_factory;
  rules.beside = {"gradient_accumulation_steps", "per_device_train_batch_size", "finetuning_type", "model_name_or_path"};
  return rules;
}

}  // namespace snug::dialects
