// torchtune: recipes/configs/*.yaml and torchtune/config (0.6, the last). Everything is said in the file; builders are named
// by "_component_", and "${name}" stands for another key's value (OmegaConf).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "recipe/dialects/reading.h"
#include "recipe/dialects/torchtune_models.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

std::string_view last_part(std::string_view component) { return component.substr(component.rfind('.') + 1); }

// "${output_dir}/logs" with the keys' values put in; "${oc.env:NAME,default}" is the default. Bounded.
std::string resolved(const Document& document, const std::string& text, int depth = 0) {
  constexpr int kDeepest = 4;
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find("${", at), text.size());
    made += text.substr(at, open - at);
    const size_t close = text.find('}', open);
    if (open == text.size() || close == std::string::npos || made.size() > 4096) {
      if (open < text.size()) made += text.substr(open);
      break;
    }
    std::string name = text.substr(open + 2, close - open - 2);
    at = close + 1;
    if (name.starts_with("oc.env:")) {
      const size_t comma = name.find(',');
      made += comma == std::string::npos ? "" : name.substr(comma + 1);
    } else if (const Entry* entry = depth < kDeepest ? document.find(name) : nullptr) {
      made += resolved(document, entry->text(), depth + 1);
    }
  }
  return made.substr(0, 4096);
}

// Configs say all of it; an absent gradient_accumulation_steps is 1, of LoRA's builders lora_rank 8, lora_alpha 16,
// lora_dropout 0 and apply_lora_to_mlp False (torchtune/models/llama3_1/_model_builders.py).
void start_torchtune(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "1");
  reading.assume("gradient_accumulation_steps", "1");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "false");
  reading.assume("lora_r", "8");
  reading.assume("lora_alpha", "16");
  reading.assume("max_grad_norm", "0");
}

void take_component(Reading& reading, const Entry& entry) {
  std::string_view name = last_part(entry.text());
  const bool dora = name.starts_with("dora_") || name.starts_with("qdora_");
  const bool quantized = name.starts_with("qlora_") || name.starts_with("qdora_");
  const bool named = dora || quantized || name.starts_with("lora_");
  if (named) name.remove_prefix(name.find('_') + 1);
  const bool lora = named || reading.document().has("model.lora_attn_modules");  // a builder of the user's own
  reading.set(entry, "method", lora ? "lora" : "full");
  if (quantized) reading.decide("load_in_4bit", "true");
  if (dora) reading.decide("use_dora", "true");
  for (const Builder& builder : kBuilders)
    if (builder.component == name) reading.model(std::string(builder.model));
  if (name.find("vision") != std::string_view::npos || name.find("clip") != std::string_view::npos)
    reading.touches(entry, "images beside text");
}

// PPO's files call the trained model so.
void take_policy(Reading& reading, const Entry& entry) {
  if (reading.document().has("model._component_")) return reading.ignore(entry);
  take_component(reading, entry);
}

void take_length(Reading& reading, const Entry& entry) {
  reading.set(entry, "max_length", resolved(reading.document(), entry.text()));
}

constexpr Saying kOptimizers[] = {
    {"torch.optim.AdamW", "adamw_torch"},
    {"torch.optim.SGD", "sgd"},
    {"torch.optim.Adafactor", "adafactor"},
    {"bitsandbytes.optim.AdamW", "adamw_torch"},
    {"bitsandbytes.optim.AdamW8bit", "adamw_8bit"},
    {"bitsandbytes.optim.PagedAdamW", "paged_adamw_32bit"},
    {"bitsandbytes.optim.PagedAdamW32bit", "paged_adamw_32bit"},
    {"bitsandbytes.optim.PagedAdamW8bit", "paged_adamw_8bit"},
    {"bitsandbytes.optim.Lion", "lion_32bit"},
    {"bitsandbytes.optim.Lion8bit", "lion_8bit"},
    {"bitsandbytes.optim.PagedLion", "paged_lion_32bit"},
    {"bitsandbytes.optim.PagedLion8bit", "paged_lion_8bit"},
    {"torchao.optim.AdamW8bit", "adamw_8bit"},
    {"torchao.prototype.low_bit_optim.AdamW8bit", "adamw_8bit"},
};

void take_optimizer_component(Reading& reading, const Entry& entry) {
  const std::string_view known = ours_of(kOptimizers, entry.text());
  if (!known.empty()) return reading.set(entry, "optim", known);
  reading.touches(entry, fmt::format("the optimizer {} is not planned: planned as AdamW", entry.text().substr(0, 60)));
}

void take_schedule(Reading& reading, const Entry& entry) {
  const std::string_view name = last_part(entry.text());
  reading.set(entry, "lr_scheduler_type", name == "get_cosine_schedule_with_warmup" ? "cosine" : name);
}

void take_loss(Reading& reading, const Entry& entry) {
  if (entry.text().find("rlhf") == std::string::npos) return take_on(reading, entry);
  reading.result().stage = entry.text().find("DPO") != std::string::npos ? "dpo" : "ppo";
  reading.touches(entry, why_stage(reading.result().stage));
}

void take_directory(Reading& reading, const Entry& entry) {
  reading.set(entry, "output_dir", resolved(reading.document(), entry.text()));
}

void take_source(Reading& reading, const Entry& entry) {
  reading.data(resolved(reading.document(), entry.text()));
  reading.ignore(entry);
}

void take_device(Reading& reading, const Entry& entry) {
  if (entry.text().starts_with("cuda")) return reading.ignore(entry);
  reading.touches(entry, fmt::format("trained on '{}'", entry.text().substr(0, 20)));
}

void take_checkpoint_dir(Reading& reading, const Entry& entry) { reading.understood(entry, "where the weights are"); }

// What "tune run --config llama3_1/8B_qlora_single_device" stands for, as far as its name tells.
void read_config_name(Reading& reading) {
  std::string name = reading.value("config");
  if (name.empty() || name.ends_with(".yaml")) return;
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return;
  std::string size = name.substr(slash + 1);
  const std::string rest = size.substr(std::min(size.find('_'), size.size()));
  size = size.substr(0, size.find('_'));
  std::transform(size.begin(), size.end(), size.begin(),
                 [](char c) { return c == '.' ? '_' : static_cast<char>(std::tolower(c)); });
  const std::string builder = name.substr(0, slash) + "_" + size;
  for (const Builder& known : kBuilders)
    if (known.component == builder || known.component == builder + "_instruct") reading.model(std::string(known.model));
  const bool lora = rest.find("lora") != std::string::npos || rest.find("dora") != std::string::npos;
  if (!reading.has("method")) reading.assume("method", lora ? "lora" : "full");
  if (rest.find("qlora") != std::string::npos) reading.decide("load_in_4bit", "true");
  if (!reading.has("per_device_train_batch_size")) reading.assume("per_device_train_batch_size", "2");
  if (!reading.has("bf16")) reading.assume("bf16", "true");
  if (!reading.has("gradient_checkpointing")) reading.assume("gradient_checkpointing", "true");
  reading.note(fmt::format("{} itself is not here: planned with what its name says", name.substr(0, 80)));
}

// Which modules, in Hugging Face's names: attention's as listed, the MLP's three, the head. Phi's checkpoints hold q, k and
// v in one, gate and up in another.
std::string adapted_modules(Reading& reading) {
  std::vector<std::string> names;
  const Entry* attention = reading.document().find("model.lora_attn_modules");
  for (const std::string& module : attention ? attention->values : std::vector<std::string>{"q_proj", "v_proj"})
    names.push_back(module == "output_proj" ? "o_proj" : module);
  if (reading.is_on("model.apply_lora_to_mlp")) names.insert(names.end(), {"gate_proj", "up_proj", "down_proj"});
  if (reading.is_on("model.apply_lora_to_output")) names.emplace_back("lm_head");
  if (reading.value("model._component_").find("lora_phi") != std::string::npos) {
    constexpr Saying kFused[] = {
        {"q_proj", "qkv_proj"},        {"k_proj", "qkv_proj"},      {"v_proj", "qkv_proj"},
        {"gate_proj", "gate_up_proj"}, {"up_proj", "gate_up_proj"},
    };
    std::vector<std::string> fused;
    for (const std::string& name : names) {
      const std::string_view one = ours_of(kFused, name);
      const std::string made = one.empty() ? name : std::string(one);
      if (std::find(fused.begin(), fused.end(), made) == fused.end()) fused.push_back(made);
    }
    names = std::move(fused);
    reading.note(
        "phi's projections stand together in its checkpoints: planned with one adapter on qkv_proj and gate_up_proj");
  }
  return fmt::format("{}", fmt::join(names, ","));
}

void finish_torchtune(Reading& reading) {
  Recipe& recipe = reading.recipe();
  read_config_name(reading);
  std::string directory = resolved(reading.document(), reading.value("checkpointer.checkpoint_dir"));
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  reading.model(directory);
  if (directory.rfind('/') != std::string::npos) reading.model(directory.substr(directory.rfind('/') + 1));
  if (recipe.method == Method::lora) {
    const std::string targets = adapted_modules(reading);
    if (!targets.empty() && targets.find(",,") == std::string::npos) reading.decide("lora_target_modules", targets);
  } else {
    recipe.quantize = {};
    if (recipe.bf16) recipe.master_weights = false;  // dtype is the dtype of everything
  }
  for (const ForeignKey& key : reading.result().keys)
    if (key.name == "loss._component_" && !key.value.ends_with("CEWithChunkedOutputLoss"))
      reading.result().unmodelled = key.value;
  if (!reading.has("max_length"))
    reading.note("tokenizer.max_seq_len is not given: the longest row decides there; planned shorter");
}

void take_modules(Reading& reading, const Entry& entry) { reading.understood(entry, "among lora_target_modules"); }

bool write_torchtune(const Document& document, const Wanted& wanted, const RecipeChange& change,
                     std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  static_cast<void>(wanted);
  if (change.key == "load_in_4bit" || change.key == "method") {
    const Entry* entry = document.find("model._component_");
    if (!entry) return true;
    const std::string& component = entry->text();
    const size_t begin = component.rfind('.') + 1;
    std::string_view name = std::string_view(component).substr(begin);
    for (const char* prefix : {"qlora_", "lora_"})
      if (name.starts_with(prefix)) {
        name.remove_prefix(std::string_view(prefix).size());
        break;
      }
    const bool adapter = name.size() != component.size() - begin;
    if (change.key == "load_in_4bit" && !adapter) return true;
    if (change.key == "load_in_4bit" && document.has("model.quantize_base"))
      return put("model.quantize_base", change.value == "true" ? "True" : "False"), true;
    const bool four = change.value == "true" || change.value == "qlora";
    const std::string prefix = change.value == "full" ? "" : four ? "qlora_" : "lora_";
    put("model._component_", component.substr(0, begin) + prefix + std::string(name));
    return true;
  }
  if (change.key == "optim") {
    const std::string_view theirs = theirs_of(kOptimizers, change.value);
    if (theirs.empty()) return true;
    put("optimizer._component_", std::string(theirs));
    // What only torch.optim.AdamW takes.
    if (change.value != "adamw_torch" && document.has("optimizer.fused")) out.push_back({"optimizer.fused", "", true});
    return true;
  }
  if (change.key == "lora_target_modules" || change.key == "load_in_8bit" || change.key == "master_weights") return true;
  if (change.key == "bf16") return put("dtype", change.value == "true" ? "bf16" : "fp32"), true;
  return false;
}

// ---- Whose file it is

// A configuration of torchtune's; of its recipes only those train that have an optimizer or epochs.
bool is_torchtune(const Document& document) {
  return std::any_of(document.entries.begin(), document.entries.end(), [](const Entry& entry) {
    return entry.leaf() == "_component_" || entry.text().starts_with("torchtune.");
  });
}

bool trains_torchtune(const Document& document) {
  return std::any_of(document.entries.begin(), document.entries.end(), [](const Entry& entry) {
    const std::string_view leaf = entry.leaf();
    return leaf == "epochs" || leaf == "optimizer" || leaf == "num_steps" || entry.path.ends_with("optimizer._component_");
  });
}

Claim claims_torchtune(const Document& document) {
  return document.syntax != Syntax::shell && is_torchtune(document) ? Claim::certain : Claim::none;
}

std::string_view torchtune_otherwise(const Document& document) {
  const bool other = is_torchtune(document) && !trains_torchtune(document);
  return other ? "torchtune's, but for generating, evaluating or quantizing" : "";
}

}  // namespace

Rules torchtune_rules() {  // NOLINT(readability-function-size): a table
  Rules rules;
  rules.name = "torchtune";
  rules.claims = claims_torchtune;
  rules.otherwise = torchtune_otherwise;
  rules.tools = {{.program = "tune", .verbs = {"run"}, .pairs = true, .launches = true}};
  rules.evaluation_batch = "batch_size_val";
  rules.pytorch_trainer = "torchtune";
  rules.rows = {
      {"model._component_", "method", take_component},
      {"policy_model._component_", "method", take_policy},
      {"training.batch_size", "per_device_train_batch_size"},
      {"training.enable_activation_checkpointing", "gradient_checkpointing", take_checkpointing},
      {"training.optimizer._component_", "optim", take_optimizer_component},
      {"training.loss._component_", "", take_loss},
      {"model.lora_rank", "lora_r"},
      {"model.lora_alpha", "lora_alpha"},
      {"model.lora_dropout", "lora_dropout"},
      {"model.lora_attn_modules", "", take_modules},
      {"model.apply_lora_to_mlp", "", take_modules},
      {"model.apply_lora_to_output", "", take_modules},
      {"model.quantize_base", "load_in_4bit"},
      {"model.use_dora", "use_dora"},
      {"batch_size", "per_device_train_batch_size"},
      {"batch_size_val", "", take_eval_batch},
      {"gradient_accumulation_steps", "gradient_accumulation_steps"},
      {"tokenizer.max_seq_len", "max_length", take_length},
      {"dataset.max_seq_len", "max_length", take_length},  // as its first versions had it
      {"dataset.packed", "packing"},
      {"dataset.source", "", take_source},
      {"dataset.data_files", "", take_source},
      {"dataset.train_on_input", "train_on_inputs"},
      {"optimizer._component_", "optim", take_optimizer_component},
      {"optimizer.lr", "learning_rate"},
      {"optimizer.weight_decay", "weight_decay"},
      {"optimizer_in_bwd", "optimizer_in_bwd"},
      {"lr_scheduler._component_", "lr_scheduler_type", take_schedule},
      {"lr_scheduler.num_warmup_steps", "warmup_steps"},
      {"loss._component_", "", take_loss},
      {"loss", "", take_loss},
      {"epochs", "num_train_epochs"},
      {"max_steps_per_epoch", "max_steps", take_count},
      {"clip_grad_norm", "max_grad_norm"},
      {"dtype", "bf16", take_dtype},
      {"enable_activation_checkpointing", "gradient_checkpointing", take_checkpointing},
      {"seed", "seed"},
      {"shuffle", "shuffle"},
      {"output_dir", "output_dir", take_directory},
      {"device", "", take_device},
      {"checkpointer.checkpoint_dir", "", take_checkpoint_dir},
  };
  rules.touches = {
      {"enable_activation_offloading", "activations go to host memory"},
      {"ac_mode", "some activations are kept", "full"},
      {"ac_option", "some activations are kept"},
      {"compile", "what the compiler fuses is never stored, and its buffers are its own"},
      {"compile.*", "what the compiler fuses is never stored, and its buffers are its own"},
      {"fsdp_cpu_offload", "weights and states go to host memory"},
      {"tensor_parallel_dim", "weights are cut over devices", "1"},
      {"tensor_parallel_plan*", "weights are cut over devices"},
      {"context_parallel_dim", "sequences are cut over devices", "1"},
      {"data_parallel_shard_dim", "weights are cut over devices", "1 -1"},
      {"data_parallel_replicate_dim", "weights stand on several devices", "1"},
      {"quantizer*", "weights are rounded in training"},
      {"teacher_model*", "a teacher beside the trained model"},
      {"teacher_checkpointer*", "a teacher beside the trained model"},
      {"kd_loss*", "distillation: logits of a teacher"},
      {"kd_ratio", "distillation: logits of a teacher"},
      {"fsdp.cpu_offload", "weights and states go to host memory"},
      {"cpu_offload", "weights and states go to host memory"},
      {"enable_fsdp", "weights are cut over devices"},
      {"training.enable_activation_offloading", "activations go to host memory"},
      {"orchestration*", "generation, a reference model and rewards beside the trained model"},
      {"inference*", "generation beside the trained model"},
      {"postprocessing*", "a reference model beside the trained one"},
      {"reward_functions*", "generation and rewards beside the trained model"},
      {"grpo_samples", "generation beside the trained model"},
      {"forward_batch_size", "generation beside the trained model"},
      {"max_generated_tokens", "generation beside the trained model"},
      {"enable_kv_cache", "generation keeps keys and values"},
      {"ppo_batch_size", "generation, a reference model and rewards beside the trained model"},
      {"value_checkpointer*", "a model of values beside the trained one"},
      {"reward_checkpointer*", "a reward model beside the trained one"},
      {"ref_checkpointer*", "a reference model beside the trained one"},
      {"resize_token_embeddings", "the embedding grows"},
      {"model.embed_dim", "a model by its sizes, not by name: give its config.json"},
      {"policy_model.embed_dim", "a model by its sizes, not by name: give its config.json"},
      {"reward_and_value_model*", "generation, a reference model and rewards beside the trained model"},
      {"ref_policy*", "a reference model beside the trained one"},
      {"enable_fp8_training", "products in fp8 keep copies of weights and activations"},
      {"model.image_size", "images beside text"},
      {"model.fusion_trainable", "images beside text"},
      {"model.encoder_trainable", "images beside text"},
      {"model.decoder_trainable", "images beside text"},
  };
  rules.ignored = {
      "tokenizer.* checkpointer.* resume_from_checkpoint save_adapter_weights_only dataset.* dataset_val "
      "dataset_val.* run_val_every_n_steps optimizer.* lr_scheduler.* loss.* metric_logger metric_logger.* "
      "log_every_n_steps log_peak_memory_stats log_level profiler profiler.* checkpoint_dir low_cpu_ram memory_efficient_* "
      "cudnn_deterministic_mode custom_sharded_layers fsdp_reshard_after_forward keep_last_n_checkpoints "
      "save_every_n_epochs checkpoint_every_* enable_async_checkpointing collate_fn config words profile ${* "
      "use_clearml epochs_* num_output_chunks chat_format prompt_template model_type "
      "fp8_recipe_name dist_init_timeout gradient_clip* train_from_scratch "
      "num_steps ppo_epochs temperature top_k min_response_length penalise_no_eos reward_penalty stop_token_ids "
      "whiten_rewards gamma lmbda kl_coeff dataloader.* datasets training.* name base_model_path fake_quant_after_n_steps "
      "debug_* chat_template model_checkpoint lora_checkpoint run_generation policy_model.* model.vocab_size model.num_* "
      "model.max_seq_len model.intermediate_dim model.attn_dropout model.norm_eps cache_size_limit"};
  rules.start = start_torchtune;
  rules.finish = finish_torchtune;
  rules.write = write_torchtune;
  rules.beside = {"gradient_accumulation_steps", "batch_size",      "epochs",
                  "optimizer._component_",       "model.lora_rank", "model._component_"};
  return rules;
}

}  // namespace snug::dialects
