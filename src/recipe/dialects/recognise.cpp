// Which trainer a file is written for: by its command, else by keys that only one of them has.

#include <algorithm>
#include <string_view>

#include "recipe/dialects/dialect.h"

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

bool is_torchtune(const Document& document) {
  return std::any_of(document.entries.begin(), document.entries.end(), [](const Entry& entry) {
    return entry.leaf() == "_component_" || entry.text().starts_with("torchtune.");
  });
}

bool is_axolotl(const Document& document) {
  if (!document.has("base_model")) return false;
  return count(document, {"datasets", "pretraining_dataset", "sequence_len", "micro_batch_size", "sample_packing",
                          "val_set_size", "num_epochs", "rl", "flash_attention", "adapter", "dataset_prepared_path"}) >= 2;
}

bool is_llama_factory(const Document& document) {
  if (!any(document, {"model_name_or_path", "adapter_name_or_path"})) return false;
  return any(document,
             {"finetuning_type", "cutoff_len", "stage", "lora_target", "dataset_dir", "pure_bf16", "neat_packing"}) &&
         count(document, {"stage", "finetuning_type", "template", "dataset", "cutoff_len", "lora_target", "dataset_dir",
                          "do_train", "quantization_bit", "overwrite_cache", "plot_loss", "pure_bf16"}) >= 3;
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
  return flat || blocks || (copies && own >= 1);
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

std::optional<Dialect> by_keys(const Document& document) {
  if (is_torchtune(document)) return Dialect::torchtune;
  if (is_ours(document)) return std::nullopt;
  if (is_axolotl(document)) return Dialect::axolotl;
  if (is_llama_factory(document)) return Dialect::llama_factory;
  if (is_unsloth(document)) return Dialect::unsloth;
  if (is_swift(document)) return Dialect::swift;
  if (is_trl(document)) return Dialect::trl;
  return std::nullopt;
}

}  // namespace

std::optional<Dialect> recognise(const Document& document) {
  if (document.syntax != dialects::Syntax::shell) return by_keys(document);
  const std::string& program = document.command[0];
  if (program == "swift") return Dialect::swift;
  if (program == "llamafactory-cli" || program == "lmf") return Dialect::llama_factory;
  if (program == "axolotl") return Dialect::axolotl;
  if (program == "tune") return Dialect::torchtune;
  if (program == "trl") return Dialect::trl;
  if (program == "unsloth") return Dialect::unsloth;
  const std::string& script = document.command[1];
  if (script.find("unsloth") != std::string::npos) return Dialect::unsloth;
  if (is_llama_factory(document)) return Dialect::llama_factory;
  if (any(document, {"model_id_or_path", "sft_type", "tuner_type"})) return Dialect::swift;
  if (is_trl(document) || script.find("sft") != std::string::npos || script.find("dpo") != std::string::npos ||
      script.find("grpo") != std::string::npos)
    return Dialect::trl;
  if (is_unsloth(document)) return Dialect::unsloth;
  return Dialect::hugging_face;
}

}  // namespace snug
