// LitGPT: litgpt/finetune/lora.py and full.py, litgpt/args.py and config_hub/finetune (2026-06). A file that jsonargparse
// reads, in blocks "data", "train", "eval" and "optimizer"; on the command line the same as --train.micro_batch_size.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"

namespace snug::dialects {

namespace {

// setup of lora.py and full.py: micro_batch_size 1, global_batch_size 16, epochs 5, lr_warmup_steps 100, lora_r 8,
// lora_alpha 16, lora_dropout 0.05 on query and value; torch.optim.AdamW's own lr 1e-3 and weight_decay 0.01. Nothing is
// checkpointed on one device; no gradient is clipped, and the rate falls as a cosine (get_lr_scheduler).
void start_litgpt(Reading& reading) {
  reading.assume("method", "full");
  reading.assume("per_device_train_batch_size", "1");
  reading.assume("packing", "false");
  reading.assume("gradient_checkpointing", "false");
  reading.assume("lora_r", "8");
  reading.assume("lora_alpha", "16");
  reading.assume("lora_dropout", "0.05");
  reading.assume("learning_rate", "1e-3");
  reading.assume("weight_decay", "0.01");
  reading.assume("lr_scheduler_type", "cosine");
  reading.assume("warmup_steps", "100");
  reading.assume("num_train_epochs", "5");
  reading.assume("max_grad_norm", "0");
  reading.assume("bnb_4bit_use_double_quant", "false");
}

// "checkpoints/meta-llama/Meta-Llama-3-8B": the hub's name behind the directory that `litgpt download` fills.
void name_model(Reading& reading, std::string name) {
  while (name.size() > 1 && name.ends_with('/')) name.pop_back();
  constexpr std::string_view kDownloads = "checkpoints/";
  const size_t at = name.find(kDownloads);
  if (at != std::string::npos) reading.model(name.substr(at + kDownloads.size()));
  reading.model(name);
  if (name.rfind('/') != std::string::npos) reading.model(name.substr(name.rfind('/') + 1));
}

void take_checkpoint(Reading& reading, const Entry& entry) {
  name_model(reading, entry.text());
  reading.understood(entry, "where the weights are");
}

// "litgpt finetune_lora MODEL"
void take_words(Reading& reading, const Entry& entry) {
  if (!entry.values.empty()) name_model(reading, entry.values[0]);
  reading.understood(entry, "where the weights are");
}

void take_litgpt_precision(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "bf16-true") return reading.set(entry, "bf16", "true");
  if (word == "32-true") return reading.understood(entry);
  if (word == "16-true" || word == "16-mixed") return reading.set(entry, "fp16", "true");
  if (word == "bf16-mixed") return reading.set(entry, "bf16", "true");
  reading.touches(entry, fmt::format("precision '{}' is not planned", word.substr(0, 40)));
}

// "bnb.nf4-dq"
void take_quantize(Reading& reading, const Entry& entry) {
  const std::string& word = entry.text();
  if (word == "bnb.int8-training") return reading.set(entry, "load_in_8bit", "true");
  const bool nested = word.ends_with("-dq");
  const std::string_view type = std::string_view(word).substr(0, word.size() - (nested ? 3 : 0));
  if (type != "bnb.nf4" && type != "bnb.fp4")
    return reading.touches(entry, fmt::format("quantized as '{}' is not planned", word.substr(0, 40)));
  reading.decide("bnb_4bit_quant_type", type.substr(4));
  reading.decide("bnb_4bit_use_double_quant", nested ? "true" : "false");
  reading.set(entry, "load_in_4bit", "true");
}

// Which modules, in Hugging Face's names: Llama's, Phi's, and those of the Phis whose checkpoints hold several in one.
struct Adapted {
  std::string_view key;
  bool by_default = false;
  std::string_view modules, of_phi, of_phi3;
};
constexpr Adapted kAdapted[] = {
    {"lora_query", true, "q_proj", "q_proj", "qkv_proj"},
    {"lora_key", false, "k_proj", "k_proj", "qkv_proj"},
    {"lora_value", true, "v_proj", "v_proj", "qkv_proj"},
    {"lora_projection", false, "o_proj", "dense", "o_proj"},
    {"lora_mlp", false, "gate_proj,up_proj,down_proj", "fc1,fc2", "gate_up_proj,down_proj"},
    {"lora_head", false, "lm_head", "lm_head", "lm_head"},
};

std::string targets_of(Reading& reading) {
  const auto named = [&](std::string_view part) {
    return std::ranges::any_of(reading.result().models,
                               [&](const std::string& name) { return lower(name).find(part) != std::string::npos; });
  };
  const bool fused = named("phi-3") || named("phi-4"), phi = named("phi-1") || named("phi-2");
  std::vector<std::string_view> targets;
  for (const Adapted& part : kAdapted) {
    if (!(reading.document().has(part.key) ? reading.is_on(part.key) : part.by_default)) continue;
    const std::string_view modules = fused ? part.of_phi3 : phi ? part.of_phi : part.modules;
    if (std::ranges::find(targets, modules) == targets.end()) targets.push_back(modules);
  }
  if (fused)
    reading.note(
        "phi's projections stand together in its checkpoints: planned with one adapter on qkv_proj and gate_up_proj");
  return fmt::format("{}", fmt::join(targets, ","));
}

void take_adapted_part(Reading& reading, const Entry& entry) { reading.understood(entry, "among lora_target_modules"); }

constexpr Saying kLitGptOptimizers[] = {
    {"torch.optim.AdamW", "adamw_torch"},
    {"AdamW", "adamw_torch"},
    {"torch.optim.SGD", "sgd"},
    {"SGD", "sgd"},
    {"bitsandbytes.optim.AdamW", "adamw_torch"},
    {"bitsandbytes.optim.AdamW8bit", "adamw_8bit"},
    {"bitsandbytes.optim.PagedAdamW", "paged_adamw_32bit"},
    {"bitsandbytes.optim.PagedAdamW8bit", "paged_adamw_8bit"},
};

void take_optimizer_class(Reading& reading, const Entry& entry) {
  const std::string_view known = ours_of(kLitGptOptimizers, entry.text());
  if (!known.empty()) return reading.set(entry, "optim", known);
  reading.touches(entry, fmt::format("the optimizer {} is not planned: planned as AdamW", entry.text().substr(0, 60)));
}

void take_whole_batch(Reading& reading, const Entry& entry) {
  reading.understood(entry, "micro_batch_size times accumulation and devices");
}

void take_mask(Reading& reading, const Entry& entry) {
  reading.set(entry, "train_on_inputs", means_off(entry.text()) ? "true" : "false");
}

int64_t devices_of(const Reading& reading) {
  const int64_t devices = count_of(reading.value("devices")), nodes = count_of(reading.value("num_nodes"));
  return std::max<int64_t>(1, devices) * std::max<int64_t>(1, nodes);
}

// More than one: FSDP, with each block checkpointed (parallelize_fn of lora.py, full.py's FSDPStrategy).
void take_devices(Reading& reading, const Entry& entry) {
  const int64_t devices = devices_of(reading);
  if (devices == 1) return reading.ignore(entry);
  reading.result().gpus = devices;
  reading.result().sharding = Sharding::fsdp;
  reading.decide("gradient_checkpointing", "true");
  reading.touches(entry, "FSDP over several devices: the plan is for one device that holds all of it");
}

bool has_lora_keys(const Document& document) {
  return std::ranges::any_of(document.entries, [](const Entry& entry) { return entry.path.starts_with("lora_"); });
}

// "finetune" alone is LoRA's; a file says it by its keys.
bool trains_adapter(const Document& document) {
  if (document.syntax == Syntax::shell) return document.command[1] != "finetune_full";
  return has_lora_keys(document);
}

void settle_precision(Reading& reading) {
  Recipe& recipe = reading.recipe();
  const std::string precision = reading.value("precision");
  if (precision.empty()) reading.assume("bf16", "true");  // get_default_supported_precision
  if (recipe.method == Method::full && precision.ends_with("-true")) recipe.master_weights = false;
  if (!precision.empty() && !precision.ends_with("-mixed")) return;
  reading.result().unmodelled = "LitGPT in mixed precision";
  if (recipe.method == Method::lora && !recipe.quantize.any())
    reading.note(fmt::format("{}: the frozen weights stay in float32, in twice the bytes; planned in {}",
                             precision.empty() ? "without a precision bf16-mixed holds" : precision,
                             recipe.fp16 ? "fp16" : "bf16"));
}

void finish_litgpt(Reading& reading) {
  Recipe& recipe = reading.recipe();
  const Document& document = reading.document();
  if (trains_adapter(document)) {
    reading.decide("method", "lora");
    if (const std::string targets = targets_of(reading); !targets.empty()) reading.decide("lora_target_modules", targets);
  } else {
    recipe.quantize = {};
  }
  const int64_t whole = count_of(reading.value("train.global_batch_size"));
  const int64_t each = (whole > 0 ? whole : 16) / devices_of(reading) / std::max<int64_t>(1, recipe.batch);
  if (whole > 0) {
    reading.decide("gradient_accumulation_steps", fmt::format("{}", std::max<int64_t>(1, each)));
  } else {
    reading.assume("gradient_accumulation_steps", fmt::format("{}", std::max<int64_t>(1, each)));
  }
  if (const Entry* name = document.find("optimizer"); name && name->values.size() == 1) take_optimizer_class(reading, *name);
  if (recipe.quantize.any()) reading.decide("optim", "paged_adamw_32bit");  // instantiate_bnb_optimizer
  settle_precision(reading);
  reading.result().eval_batch = recipe.batch;
  if (!reading.has("max_length"))
    reading.note("train.max_seq_length is not given: the longest row decides there; planned shorter");
}

bool write_litgpt(const Document& document, const Wanted& wanted, const RecipeChange& change,
                  std::vector<TheirSetting>& out) {
  const auto put = [&](std::string path, std::string value) { out.push_back({std::move(path), std::move(value)}); };
  const auto whole = [&] {
    const int64_t gpus = std::max<int64_t>(1, wanted.read.gpus);
    put("train.global_batch_size", fmt::format("{}", wanted.recipe.batch * wanted.recipe.accumulation * gpus));
  };
  if (change.key == "per_device_train_batch_size") {
    put("train.micro_batch_size", change.value);
    whole();
    return true;
  }
  if (change.key == "gradient_accumulation_steps") return whole(), true;
  if (change.key == "load_in_4bit" || change.key == "load_in_8bit") {
    if (wanted.recipe.method == Method::full) return true;
    if (change.value == "true") {
      put("quantize", change.key == "load_in_4bit" ? "bnb.nf4" : "bnb.int8-training");
    } else if (!wanted.recipe.quantize.any() && document.has("quantize")) {
      out.push_back({"quantize", "", true});
    }
    return true;
  }
  if (change.key == "optim") {
    const std::string_view theirs = theirs_of(kLitGptOptimizers, change.value);
    if (!wanted.recipe.quantize.any() && !theirs.empty() && document.has("optimizer.class_path"))
      put("optimizer.class_path", std::string(theirs));
    return true;
  }
  if (change.key == "bf16") return put("precision", change.value == "true" ? "bf16-true" : "32-true"), true;
  return change.key == "method" || change.key == "packing" || change.key == "master_weights" ||
         change.key == "gradient_checkpointing" || change.key == "lora_target_modules";
}

Claim claims_litgpt(const Document& document) {
  if (document.syntax == Syntax::shell) return Claim::none;
  const Entry* data = document.find("data.class_path");
  if (data && data->text().starts_with("litgpt.data.") && document.has("train")) return Claim::certain;
  const bool batches = has_any(document, {"train.micro_batch_size", "train.global_batch_size"});
  return document.has("checkpoint_dir") && batches ? Claim::certain : Claim::none;
}

}  // namespace

Rules litgpt_rules() {
  Rules rules;
  rules.name = "LitGPT";
  rules.claims = claims_litgpt;
  rules.tools = {{.program = "litgpt", .verbs = {"finetune", "finetune_lora", "finetune_full"}}};
  rules.evaluation_batch = "train.micro_batch_size";
  rules.pytorch_trainer = "litgpt";
  rules.rows = {
      {"checkpoint_dir", "", take_checkpoint},
      {"words", "", take_words},
      {"out_dir", "output_dir"},
      {"precision", "bf16", take_litgpt_precision},
      {"quantize", "load_in_4bit", take_quantize},
      {"devices", "", take_devices},
      {"num_nodes", "", take_devices},
      {"lora_r", "lora_r"},
      {"lora_alpha", "lora_alpha"},
      {"lora_dropout", "lora_dropout"},
      {"lora_query", "", take_adapted_part},
      {"lora_key", "", take_adapted_part},
      {"lora_value", "", take_adapted_part},
      {"lora_projection", "", take_adapted_part},
      {"lora_mlp", "", take_adapted_part},
      {"lora_head", "", take_adapted_part},
      {"data.init_args.json_path", "", take_data},
      {"data.json_path", "", take_data},
      {"data.init_args.mask_prompt", "train_on_inputs", take_mask},
      {"data.mask_prompt", "train_on_inputs", take_mask},
      {"train.global_batch_size", "", take_whole_batch},
      {"train.micro_batch_size", "per_device_train_batch_size"},
      {"train.max_seq_length", "max_length"},
      {"train.epochs", "num_train_epochs"},
      {"train.max_steps", "max_steps", take_count},
      {"train.lr_warmup_steps", "warmup_steps"},
      {"train.save_interval", "save_steps"},
      {"train.log_interval", "logging_steps"},
      {"optimizer.class_path", "optim", take_optimizer_class},
      {"optimizer.init_args.lr", "learning_rate"},
      {"optimizer.lr", "learning_rate"},
      {"optimizer.init_args.weight_decay", "weight_decay"},
      {"optimizer.weight_decay", "weight_decay"},
      {"seed", "seed"},
  };
  rules.ignored = {
      "data data.* train.max_tokens train.max_norm train.tie_embeddings train.min_lr train.max_time "
      "train.lr_warmup_fraction optimizer eval eval.* log log.* logger_name optimizer.* access_token resume config"};
  rules.start = start_litgpt;
  rules.finish = finish_litgpt;
  rules.write = write_litgpt;
  rules.beside = {"train.micro_batch_size", "train.global_batch_size", "train.max_seq_length", "precision",
                  "checkpoint_dir"};
  return rules;
}

}  // namespace snug::dialects
