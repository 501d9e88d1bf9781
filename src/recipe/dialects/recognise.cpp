// Which trainer a file is written for: by its command, else by keys that only one of them has.

#include <algorithm>
#include <string_view>

#include "recipe/dialects/dialect.h"
#include "recipe/foreign_keys.h"

namespace snug {

namespace {

using dialects::Document;
using dialects::Entry;

bool any(const Document& document, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(), [&](std::string_view path) { return document.has(path); });
}

size_t count(const Document& document, std::initializer_list<std::string_view> paths) {
  return static_cast<size_t>(
      std::count_if(paths.begin(), paths.end(), [&](std::string_view path) { return document.has(path); }));
}

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

bool is_axolotl(const Document& document) {
  if (!document.has("base_model")) return false;
  return count(document,
               {"datasets", "pretraining_dataset", "sequence_len", "micro_batch_size", "sample_packing", "val_set_size",
                "num_epochs", "rl", "flash_attention", "adapter", "dataset_prepared_path", "chat_template", "reward_model",
                "process_reward_model", "special_tokens", "processor_type", "tokenizer_type"}) >= 2;
}

// Beyond doubt, whatever a launcher's own keys beside them are called.
bool is_surely_axolotl(const Document& document) {
  return document.has("base_model") &&
         count(document, {"datasets", "sequence_len", "micro_batch_size", "num_epochs", "sample_packing"}) >= 3;
}

// What LLaMA-Factory's file says with do_predict and without do_train.
bool only_predicts(const Document& document) {
  const auto on = [&](std::string_view name) {
    const Entry* entry = document.find(name);
    return entry && entry->kind == dialects::EntryKind::scalar && !means_off(entry->text());
  };
  return on("do_predict") && !on("do_train");
}

bool is_llama_factory(const Document& document) {
  if (only_predicts(document)) return false;
  if (!any(document, {"model_name_or_path", "adapter_name_or_path"})) return false;
  return any(document,
             {"finetuning_type", "cutoff_len", "stage", "lora_target", "dataset_dir", "pure_bf16", "neat_packing"}) &&
         count(document, {"stage", "finetuning_type", "template", "dataset", "cutoff_len", "lora_target", "dataset_dir",
                          "do_train", "quantization_bit", "overwrite_cache", "plot_loss", "pure_bf16"}) >= 3;
}

// LLaMA-Factory's second generation: plugins in blocks.
bool is_llama_factory_v1(const Document& document) {
  return document.has("train_dataset") && any(document, {"model", "model_class"}) &&
         any(document, {"micro_batch_size", "cutoff_len", "peft_config", "kernel_config", "batching_strategy"});
}

bool is_megatron_swift(const Document& document) {
  return any(document, {"micro_batch_size", "global_batch_size"}) && any(document, {"model", "load", "mcore_model"}) &&
         any(document, {"recompute_granularity", "tensor_model_parallel_size", "expert_model_parallel_size"});
}

bool is_autotrain(const Document& document) {
  return document.has("task") && document.has("base_model") && any(document, {"params", "project_name"});
}

bool is_swift(const Document& document) {
  if (!any(document, {"model", "model_id_or_path", "model_dir", "ckpt_dir"})) return false;
  if (document.has("swift_version")) return true;
  return any(document, {"dataset", "train_type", "tuner_type", "sft_type", "rlhf_type"}) &&
         count(document, {"train_type", "tuner_type", "sft_type", "rlhf_type", "lora_rank", "target_modules", "max_length",
                          "val_dataset", "quant_bits", "loss_scale", "split_dataset_ratio", "per_device_train_batch_size",
                          "freeze_vit", "dataset_num_proc", "attn_impl", "dataset", "torch_dtype"}) >= 3;
}

// Of Unsloth's own names, or a model of Unsloth's own copies.
bool is_unsloth(const Document& document) {
  size_t own = 0;
  bool copies = false;
  for (const Entry& entry : document.entries) {
    const std::string_view leaf = entry.leaf();
    own += leaf == "use_gradient_checkpointing" || leaf == "max_seq_length" || leaf == "load_in_4bit" ||
                   leaf == "model_name" || leaf == "train_on_completions" || leaf == "random_state" ||
                   leaf == "training_type" || leaf == "lora_r" || leaf == "lora_rank"
               ? 1
               : 0;
    copies = copies || entry.text().starts_with("unsloth/") || entry.text() == "unsloth";
  }
  const bool flat = document.has("model_name") && document.has("max_seq_length") && own >= 3;
  const bool blocks = document.has("training.max_seq_length") && (document.has("lora") || document.has("training.lora"));
  return flat || blocks || (copies && (own >= 1 || any(document, {"model.base_model", "model.name"})));
}

bool is_trl(const Document& document) {
  if (!any(document, {"model_name_or_path", "model_name", "model"})) return false;
  return any(document, {"dataset_name", "dataset_mixture", "dataset_mixer", "dataset_train_split", "dataset_test_split",
                        "use_bnb_nested_quant", "reward_funcs", "max_prompt_length", "num_generations", "chat_template_path",
                        "dataset_num_proc", "dataset_kwargs"});
}

// A key that no other trainer has: the file is one of ours.
bool is_ours(const Document& document) {
  const Entry* data = document.find("data");
  const bool names_file = data && data->kind == dialects::EntryKind::scalar && data->values.size() == 1;
  return names_file ||
         any(document, {"eval_data", "memory", "memory_budget", "method", "checkpoint_layers", "dataset_format"});
}

// TrainingArguments by names that few other programs have.
bool is_trainer(const Document& document) {
  return any(document, {"per_device_train_batch_size", "per_gpu_train_batch_size"}) ||
         count(document, {"gradient_accumulation_steps", "num_train_epochs", "lr_scheduler_type", "warmup_ratio",
                          "logging_steps", "save_strategy", "eval_strategy", "save_total_limit", "bf16", "fp16", "optim",
                          "deepspeed", "learning_rate", "output_dir", "max_steps", "gradient_checkpointing"}) >= 3;
}

std::optional<Dialect> by_keys(const Document& document) {
  if (is_torchtune(document)) return trains_torchtune(document) ? std::optional(Dialect::torchtune) : std::nullopt;
  if (is_autotrain(document)) return Dialect::autotrain;
  if (is_surely_axolotl(document)) return Dialect::axolotl;
  if (is_ours(document)) return std::nullopt;
  if (is_axolotl(document)) return Dialect::axolotl;
  if (is_llama_factory(document)) return Dialect::llama_factory;
  if (is_llama_factory_v1(document)) return Dialect::llama_factory_v1;
  if (is_unsloth(document)) return Dialect::unsloth;
  if (is_megatron_swift(document)) return Dialect::megatron_swift;
  if (is_swift(document)) return Dialect::swift;
  if (is_trl(document)) return Dialect::trl;
  // TrainingArguments as JSON; as YAML our own reader takes them.
  if (document.syntax == dialects::Syntax::json && is_trainer(document) && what_else(document).empty())
    return Dialect::hugging_face;
  return std::nullopt;
}

// "train.py keys.yaml"
bool names_a_file_of_keys(const Document& document) {
  const Entry* words = document.find("words");
  return words && std::any_of(words->values.begin(), words->values.end(),
                              [](const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); });
}

// diffusers' scripts.
bool trains_images(const Document& document) {
  return document.has("pretrained_model_name_or_path") && any(document, {"resolution", "train_batch_size"});
}

std::optional<Dialect> by_script(const Document& document) {
  const std::string& script = document.command[1];
  const auto says = [&](std::string_view part) { return script.find(part) != std::string::npos; };
  if (says("unsloth")) return Dialect::unsloth;
  if (is_llama_factory(document)) return Dialect::llama_factory;
  if (is_megatron_swift(document)) return Dialect::megatron_swift;
  if (any(document, {"model_id_or_path", "sft_type", "tuner_type", "train_type"}) || says("llm_sft") || says("swift"))
    return Dialect::swift;
  if (says("axolotl")) return Dialect::axolotl;
  if (is_trl(document) || says("sft") || says("dpo") || says("grpo")) return Dialect::trl;
  if (is_unsloth(document)) return Dialect::unsloth;
  if (document.has("config") || names_a_file_of_keys(document)) return Dialect::hugging_face;
  if (trains_images(document)) return std::nullopt;
  return is_trainer(document) ? std::optional(Dialect::hugging_face) : std::nullopt;
}

struct Stranger {
  std::string_view what;
  std::vector<std::string_view> any, all;  // keys
};

const std::vector<Stranger>& strangers() {
  static const std::vector<Stranger> list = {
      {"a DeepSpeed configuration", {"zero_optimization", "zero_optimization.stage", "train_micro_batch_size_per_gpu"}, {}},
      {"an accelerate configuration", {"distributed_type", "compute_environment", "num_machines"}, {}},
      {"an FSDP configuration", {"fsdp_transformer_layer_cls_to_wrap", "fsdp_version", "reshard_after_forward"}, {}},
      {"an FSDP configuration", {}, {"fsdp", "fsdp_config"}},
      {"a model's config.json", {}, {"architectures", "hidden_size"}},
      {"an adapter's configuration", {}, {"peft_type", "base_model_name_or_path"}},
      {"a Kubernetes manifest", {}, {"apiVersion", "kind"}},
      {"a list of models to merge", {"merge_method"}, {"models"}},
      {"for merging or exporting a model", {"export_dir", "export_quantization_bit"}, {}},
      {"for merging or exporting a model", {"peft_config.export_dir"}, {}},
      {"for prediction, not for training", {"do_predict"}, {"template"}},
      {"for evaluating a model", {"n_shot", "task_dir"}, {"task"}},
      {"for generating text", {"infer_backend", "stream", "vllm_maxlen", "sampler_type"}, {}},
      {"for generating text", {}, {"model_name_or_path", "template"}},
  };
  return list;
}

}  // namespace

std::string what_else(const Document& document) {
  const auto has = [&](std::string_view path) { return document.has(path); };
  if (trains_images(document)) return "for training a model of images";
  if (is_torchtune(document) && !trains_torchtune(document))
    return "torchtune's, but for generating, evaluating or quantizing";
  for (const Stranger& stranger : strangers())
    if (std::all_of(stranger.all.begin(), stranger.all.end(), has) &&
        (stranger.any.empty() || std::any_of(stranger.any.begin(), stranger.any.end(), has)))
      return std::string(stranger.what);
  const bool lists_data = std::any_of(document.entries.begin(), document.entries.end(), [](const Entry& entry) {
    return entry.leaf() == "hf_hub_url" || entry.leaf() == "file_name" || entry.leaf() == "script_url";
  });
  return lists_data ? "a list of data sets" : "";
}

std::optional<Dialect> recognise(const Document& document) {
  if (document.syntax != dialects::Syntax::shell) return by_keys(document);
  const std::string& program = document.command[0];
  if (program == "swift") return Dialect::swift;
  if (program == "megatron") return Dialect::megatron_swift;
  if (program == "autotrain") return Dialect::autotrain;
  if (program == "llamafactory-cli" || program == "lmf") return Dialect::llama_factory;
  if (program == "axolotl") return Dialect::axolotl;
  if (program == "tune") return Dialect::torchtune;
  if (program == "trl") return Dialect::trl;
  if (program == "unsloth") return Dialect::unsloth;
  return by_script(document);
}

}  // namespace snug
