#include "recipe/dialects/own_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>
#include <utility>

#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

struct Name {
  std::string_view own, trainers;
};

constexpr auto kModels = std::to_array<std::string_view>({"model_name_or_path",
                                                          "model_name",
                                                          "base_model",
                                                          "base_model_name",
                                                          "model_id",
                                                          "base_model_id",
                                                          "base_model_name_or_path",
                                                          "pretrained_model_name_or_path",
                                                          "policy_model_name_or_path",
                                                          "policy_name",
                                                          "policy_model",
                                                          "student_model",
                                                          "model_path",
                                                          "hf_model",
                                                          "model_dir",
                                                          "llm_backbone",
                                                          "actor_model_name_or_path",
                                                          "actor_model_path",
                                                          "base_model_path",
                                                          "pretrained_model",
                                                          "pretrained_model_name",
                                                          "model_checkpoint",
                                                          "backbone",
                                                          "llm_name",
                                                          "model_key",
                                                          "pretrain"});
constexpr auto kModelsOfModel =
    std::to_array<std::string_view>({"name", "path", "id", "base", "base_path", "hf_name", "pretrained", "name_or_path",
                                     "hf_id", "checkpoint", "base_name", "repo_id"});

// verl's: of the model that is trained, among those that only answer.
constexpr auto kPaths =
    std::to_array<Name>({{"actor_rollout_ref.model.path", "model_name_or_path"},
                         {"model.partial_pretrain", "model_name_or_path"},
                         {"actor_rollout_ref.model.lora_rank", "lora_r"},
                         {"actor_rollout_ref.model.lora_alpha", "lora_alpha"},
                         {"actor_rollout_ref.model.target_modules", "lora_target_modules"},
                         {"actor_rollout_ref.model.enable_gradient_checkpointing", "gradient_checkpointing"},
                         {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "per_device_train_batch_size"},
                         {"actor_rollout_ref.actor.optim.lr", "learning_rate"},
                         {"trainer.n_gpus_per_node", "launch.gpus_per_node"},
                         {"trainer.nnodes", "launch.nnodes"}});

// "lora: {r: 16}"
constexpr auto kOfLora = std::to_array<Name>({{"r", "lora_r"},
                                              {"rank", "lora_r"},
                                              {"alpha", "lora_alpha"},
                                              {"dropout", "lora_dropout"},
                                              {"targets", "lora_target_modules"},
                                              {"bias", "lora_bias"},
                                              {"enabled", "use_peft"},
                                              {"enable", "use_peft"}});

// Words that no trainer's own script has.
constexpr auto kNobodyElses = std::to_array<std::string_view>(
    {"micro_batch_size", "train_batch_size", "batch_size", "accumulation_steps", "cutoff_len", "quantization", "seq_length",
     "load_in_bits", "batch_size_training", "context_length", "use_qlora", "use_ia3", "quant", "bits", "model_max_len",
     "bnb_compute_dtype"});

constexpr auto kAnywhere = std::to_array<Name>({{"lora_rank", "lora_r"},
                                                {"cutoff_length", "max_length"},
                                                {"block_size", "max_length"},
                                                {"target_modules", "lora_target_modules"},
                                                {"use_lora", "use_peft"},
                                                {"load_4bit", "load_in_4bit"},
                                                {"load_8bit", "load_in_8bit"},
                                                {"train_in_8bit", "load_in_8bit"},
                                                {"train_in_4bit", "load_in_4bit"},
                                                {"batch_size", "per_device_train_batch_size"},
                                                {"train_batch_size", "per_device_train_batch_size"},
                                                {"micro_batch_size", "per_device_train_batch_size"},
                                                {"per_device_batch_size", "per_device_train_batch_size"},
                                                {"batch_size_per_device", "per_device_train_batch_size"},
                                                {"micro_batch_size_per_gpu", "per_device_train_batch_size"},
                                                {"backbone_dtype", "torch_dtype"},
                                                {"enable_gradient_checkpointing", "gradient_checkpointing"},
                                                {"micro_train_batch_size", "per_device_train_batch_size"},
                                                {"device_train_microbatch_size", "per_device_train_batch_size"},
                                                {"batch_size_training", "per_device_train_batch_size"},
                                                {"accumulate", "gradient_accumulation_steps"},
                                                {"accumulate_grad_batches", "gradient_accumulation_steps"},
                                                {"grad_accum", "gradient_accumulation_steps"},
                                                {"grad_accum_steps", "gradient_accumulation_steps"},
                                                {"accumulation_steps", "gradient_accumulation_steps"},
                                                {"gradient_accumulation", "gradient_accumulation_steps"},
                                                {"max_seq_len", "max_length"},
                                                {"model_max_len", "max_length"},
                                                {"quant_type", "bnb_4bit_quant_type"},
                                                {"double_quant", "bnb_4bit_use_double_quant"},
                                                {"max_len", "max_length"},
                                                {"context_length", "max_length"},
                                                {"sequence_len", "max_length"},
                                                {"model_max_length", "max_length"},
                                                {"max_seq_length", "max_length"},
                                                {"max_sequence_length", "max_length"},
                                                {"max_input_length", "max_length"},
                                                {"sequence_length", "max_length"},
                                                {"seq_length", "max_length"},
                                                {"seq_len", "max_length"},
                                                {"cutoff_len", "max_length"},
                                                {"epochs", "num_train_epochs"},
                                                {"num_epochs", "num_train_epochs"},
                                                {"max_epochs", "num_train_epochs"},
                                                {"lr", "learning_rate"},
                                                {"optimizer", "optim"},
                                                {"use_4bit", "load_in_4bit"},
                                                {"use_8bit", "load_in_8bit"},
                                                {"use_qlora", "load_in_4bit"},
                                                {"sample_packing", "packing"},
                                                {"bnb_compute_dtype", "bnb_4bit_compute_dtype"},
                                                {"bnb_quant_type", "bnb_4bit_quant_type"},
                                                {"bnb_double_quant", "bnb_4bit_use_double_quant"}});

// The Trainer's own, or TRL's and PEFT's.
constexpr auto kTrainers = std::to_array<std::string_view>({"lora_r",
                                                            "lora_alpha",
                                                            "lora_dropout",
                                                            "lora_target_modules",
                                                            "lora_bias",
                                                            "use_peft",
                                                            "use_dora",
                                                            "use_rslora",
                                                            "load_in_4bit",
                                                            "load_in_8bit",
                                                            "bnb_4bit_quant_type",
                                                            "bnb_4bit_use_double_quant",
                                                            "bnb_4bit_compute_dtype",
                                                            "bf16",
                                                            "fp16",
                                                            "torch_dtype",
                                                            "dtype",
                                                            "gradient_checkpointing",
                                                            "per_device_train_batch_size",
                                                            "per_device_eval_batch_size",
                                                            "gradient_accumulation_steps",
                                                            "num_train_epochs",
                                                            "max_steps",
                                                            "learning_rate",
                                                            "packing",
                                                            "optim",
                                                            "max_length",
                                                            "attn_implementation",
                                                            "weight_decay",
                                                            "max_grad_norm",
                                                            "lr_scheduler_type",
                                                            "warmup_ratio",
                                                            "warmup_steps",
                                                            "logging_steps",
                                                            "save_steps",
                                                            "eval_steps",
                                                            "save_strategy",
                                                            "eval_strategy",
                                                            "save_total_limit",
                                                            "output_dir",
                                                            "seed",
                                                            "deepspeed",
                                                            "report_to",
                                                            "neftune_noise_alpha"});

// What says how it is trained, and in how many bits the model is loaded.
constexpr auto kMethods = std::to_array<std::string_view>({"training_mode", "finetuning_type", "training_type",
                                                           "tuning_type", "method", "finetune_method", "tuning_method",
                                                           "train_type", "peft_method", "peft_type", "adapter"});
constexpr auto kBits =
    std::to_array<std::string_view>({"load_in_bits", "quantization_bit", "quant", "quantization", "quantize", "bits"});

// Sections about other things than the trained model's steps.
constexpr auto kElsewhere = std::to_array<std::string_view>({"eval", "infer", "generat", "vllm", "sampl", "teacher", "ref",
                                                             "reward", "judge", "embed", "draft", "serv", "test", "merge"});

template <size_t N>
bool holds(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

template <size_t N>
std::string_view look_up(const std::array<Name, N>& list, std::string_view word) {
  const auto found = std::ranges::find(list, word, &Name::own);
  return found == list.end() ? std::string_view() : found->trainers;
}

bool is_elsewhere(std::string_view parent) {
  return std::ranges::any_of(kElsewhere, [&](std::string_view part) { return parent.find(part) != std::string_view::npos; });
}

// "lora" of "training.lora.r".
std::string section_of(const Entry& entry) { return lower(entry.parent().substr(entry.parent().rfind('.') + 1)); }

bool is_of_lora(const std::string& section) {
  return section.find("lora") != std::string::npos || section.find("peft") != std::string::npos || section == "adapter";
}

// "Qwen/Qwen3-0.6B", "llama-7b", "gpt2-medium", "./model": a word with an owner or a size. "qwen3" may be the name of
// anything.
bool may_be_a_model(const std::string& value) {
  if (value.size() > 200 || value.find_first_of(" \t\n") != std::string::npos) return false;
  for (const char* ending : {".yaml", ".yml", ".json"})  // "base: configs/base.yaml"
    if (value.ends_with(ending)) return false;
  const bool digit = value.find_first_of("0123456789") != std::string::npos;
  const bool size = digit && (value.find('-') != std::string::npos || value.ends_with('b') || value.ends_with('B'));
  return size || value.find('/') != std::string::npos;
}

// "defaults.1.model" stands in a list: of what, only who wrote it knows.
bool is_in_list(std::string_view path) {
  for (size_t at = path.find('.'); at != std::string_view::npos; at = path.find('.', at + 1))
    if (at + 1 < path.size() && std::isdigit(static_cast<unsigned char>(path[at + 1])) != 0) return true;
  return false;
}

// "models: [{name: owner/one}, {name: owner/other}]": settings of one training after the other.
bool is_first_of_models(const Entry& entry) {
  const bool named = entry.path == "models.0.name" || entry.path == "models.0.model" || entry.path == "models.0.path";
  return named && entry.text().find('/') != std::string::npos;
}

bool names_model(const Document& document, const Entry& entry) {
  if (look_up(kPaths, entry.path) == "model_name_or_path") return !entry.text().empty();
  if (entry.kind != EntryKind::scalar || entry.text().empty() || is_elsewhere(entry.parent())) return false;
  if (holds(kModels, entry.leaf()) || is_first_of_models(entry)) return true;
  if ((entry.leaf() == "model" || entry.path == "base") && may_be_a_model(entry.text()) && !is_in_list(entry.path))
    return true;
  const std::string section = section_of(entry);
  if (entry.leaf() == "hf_path" && entry.parent().find("model") != std::string::npos)
    return true;  // a data set has one, too
  if (section == "models" && (entry.leaf() == "student" || entry.leaf() == "sft_backbone")) return true;
  if ((section != "model" && section != "base_model") || !holds(kModelsOfModel, entry.leaf())) return false;
  return !document.has(std::string(entry.parent()) + ".pretrained_model_name_or_path");  // else its name is of its kind
}

// By the Trainer's name; "" where it has none.
std::string_view trainers_name(const Entry& entry) {
  if (const std::string_view name = look_up(kPaths, entry.path); !name.empty()) return name;
  if (entry.kind == EntryKind::map || is_elsewhere(entry.parent())) return {};
  const std::string_view leaf = entry.leaf();
  if (is_of_lora(section_of(entry)))
    if (const std::string_view name = look_up(kOfLora, leaf); !name.empty()) return name;
  if (entry.path == "r") return "lora_r";  // beside keys of a training
  if (const std::string_view name = look_up(kAnywhere, leaf); !name.empty()) return name;
  return holds(kTrainers, leaf) ? leaf : std::string_view();
}

Entry made(const Entry& like, std::string path, std::string value) {
  return {.path = std::move(path), .values = {std::move(value)}, .line = like.line, .name = like.name, .value = like.value};
}

// "quantization: {enabled: false, bits: 4}"
bool is_switched_off(const Document& document, const Entry& entry) {
  const Entry* const enabled = entry.parent().empty() ? nullptr : document.find(std::string(entry.parent()) + ".enabled");
  return enabled && lower(enabled->text()) == "false";
}

// "training_mode: full", "mixed_precision: bf16" say what flags of the Trainer's say.
std::vector<Entry> spelled_out(const Entry& entry) {
  const std::string_view leaf = entry.leaf();
  const std::string& value = entry.text();
  if (holds(kMethods, leaf)) {
    const std::string word = lower(value);
    if (word.starts_with("qlora")) return {made(entry, "use_peft", "true"), made(entry, "load_in_4bit", "true")};
    if (word.starts_with("lora")) return {made(entry, "use_peft", "true")};
    if (word.starts_with("full")) return {made(entry, "use_peft", "false")};
  }
  if ((leaf == "lora" || leaf == "train_lora") && (value == "true" || value == "false"))
    return {made(entry, "use_peft", value)};
  if (holds(kBits, leaf) || leaf == "backbone_dtype") {
    const std::string word = lower(value);
    for (const char* bits : {"4", "8"})
      if (word == bits || word == std::string(bits) + "bit" || word == std::string(bits) + "-bit" ||
          word == std::string("int") + bits || (bits[0] == '4' && word == "nf4"))
        return {made(entry, std::string("load_in_") + bits + "bit", "true")};
  }
  if (leaf == "use_qlora" && value == "true") return {made(entry, "use_peft", "true"), made(entry, "load_in_4bit", "true")};
  // llama-recipes'.
  if ((leaf == "mixed_precision" || leaf == "pure_bf16") && value == "true") return {made(entry, "bf16", "true")};
  if (leaf == "enable_fsdp" && value == "true") return {made(entry, "fsdp", "full_shard")};
  if (leaf == "mixed_precision" || leaf == "precision" || leaf == "compute_dtype") {
    if (value.find("bf16") != std::string::npos || value == "bfloat16") return {made(entry, "bf16", "true")};
    const bool lightnings = leaf == "precision" && (value == "16" || value.starts_with("16-"));
    if (lightnings || value.find("fp16") != std::string::npos || value == "float16") return {made(entry, "fp16", "true")};
  }
  return {};
}

// What is asked and what is answered, which verl and OpenRLHF count apart: a row's length; nothing where they are not said.
std::optional<Entry> length_of_both(const Document& document) {
  constexpr std::pair<const char*, const char*> kBoth[] = {{"data.max_prompt_length", "data.max_response_length"},
                                                           {"prompt_max_len", "generate_max_len"}};
  for (const auto& [before, behind] : kBoth) {
    const Entry *const prompt = document.find(before), *const response = document.find(behind);
    if (!prompt || !response) continue;
    if (const int64_t rows = joint_length(prompt->text(), response->text()); rows > 0)
      return made(*response, "max_length", std::to_string(rows));
  }
  return std::nullopt;
}

int64_t gpus_at(const Document& document, const char* path) {
  const Entry* const entry = document.find(path);
  return entry ? std::clamp<int64_t>(count_of(entry->text()), 1, 1'000'000) : 1;
}

// What verl's workers and its SFT trainer do where nothing says otherwise (verl/workers/fsdp_workers.py): weights in fp32,
// of which FSDP gathers copies in bf16 from all GPUs. Its older micro-batch is one of all GPUs together.
void add_verls_defaults(const Document& document, Document& renamed) {
  const Entry* model = document.find("actor_rollout_ref.model.path");
  if (!model) model = document.find("model.partial_pretrain");
  if (!model) return;
  const auto say = [&](const char* key, std::string value) {
    renamed.entries.push_back(made(*model, key, std::move(value)));
  };
  const int64_t gpus = std::max(gpus_at(document, "trainer.n_gpus_per_node"), gpus_at(document, "launch.nproc_per_node")) *
                       gpus_at(document, "trainer.nnodes");
  if (!renamed.has("bf16") && !renamed.has("fp16")) say("bf16", "true");
  if (!renamed.has("torch_dtype") && !renamed.has("dtype")) say("torch_dtype", "float32");
  const Entry* const strategy = document.find("actor_rollout_ref.actor.strategy");
  if (gpus > 1 && !(strategy && strategy->text() == "megatron") && !renamed.has("fsdp")) say("fsdp", "full_shard");
  const Entry* const rows = document.find("actor_rollout_ref.actor.ppo_micro_batch_size");
  if (rows && count_of(rows->text()) > 0 && !document.has("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"))
    say("per_device_train_batch_size", std::to_string(std::max<int64_t>(1, count_of(rows->text()) / gpus)));
  renamed.notes.emplace_back("verl: weights in fp32, gathered by FSDP in bf16, as it does where nothing says otherwise");
}

// "ft_bloom_deepspeed.py": so named, fewer flags say that it trains.
bool is_named_for_training(const Document& document) {
  if (document.syntax != Syntax::shell || document.command.size() < 2) return false;
  return sounds_like_training(document.command[1]) || document.command[1].find("ft_") != std::string::npos;
}

const Entry* scalar_named(const Document& document, std::initializer_list<std::string_view> leaves) {
  const auto found = std::ranges::find_if(document.entries, [&](const Entry& entry) {
    return entry.kind == EntryKind::scalar && !is_elsewhere(entry.parent()) &&
           std::ranges::find(leaves, entry.leaf()) != leaves.end();
  });
  return found == document.entries.end() ? nullptr : &*found;
}

// "bnb_4bit_quant_type: nf4" in somebody's own settings is of a model in four bits.
void add_meant_bits(const Document& document, Document& renamed) {
  const Entry* const kind = scalar_named(document, {"bnb_4bit_quant_type", "bnb_4bit_use_double_quant"});
  if (kind && !scalar_named(document, {"load_in_4bit", "load_in_8bit", "use_4bit", "load_4bit", "use_qlora"}))
    renamed.entries.push_back(made(*kind, "load_in_4bit", "true"));
}

bool is_of_a_step(std::string_view leaf) {
  return leaf == "batch_size" || leaf == "global_batch_size" || leaf == "train_batch_size";
}

// Beside a micro-batch's size "batch_size" is a step's, as alpaca-lora has it: how many micro-batches; 0 where it is not.
int64_t micro_batches(const Document& document) {
  const Entry* const micro =
      scalar_named(document, {"micro_batch_size", "micro_train_batch_size", "per_device_train_batch_size",
                              "per_device_batch_size", "micro_batch_size_per_gpu"});
  const Entry* const step = scalar_named(document, {"batch_size", "global_batch_size", "train_batch_size"});
  if (!micro || !step) return 0;
  constexpr int64_t kMost = 1 << 20;
  const auto read = [](const Entry* entry) -> int64_t {
    int64_t number = 0;
    const std::string& text = entry->text();
    const bool whole = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
    return whole && number > 0 && number <= kMost ? number : 0;
  };
  const auto launched = [&](const char* name) {
    const Entry* const entry = document.find(name);
    return entry ? std::max<int64_t>(read(entry), 1) : 1;
  };
  const int64_t rows = read(micro), all = read(step);
  if (rows == 0 || all == 0 || all % rows != 0) return 0;
  const int64_t each = all / rows;  // of one process, or of all that are launched
  const int64_t processes = launched("launch.nproc_per_node") * launched("launch.nnodes");
  return each % processes == 0 ? each / processes : each;
}

void take_model(const Entry& entry, const Document& document, Document& renamed) {
  if (is_first_of_models(entry) && document.has("models.1"))
    renamed.notes.push_back("several models: planned is the first, " + entry.text().substr(0, 100));
  renamed.entries.push_back(entry);
  renamed.entries.back().path = "model_name_or_path";
}

// "python -m mlx_lm.lora --model … --train"
bool runs_mlx(const Document& document) { return document.command.size() > 1 && document.command[1].starts_with("mlx_lm"); }

// mlx_lm/lora.py, CONFIG_DEFAULTS.
void add_mlx_defaults(const Document& document, Document& renamed) {
  constexpr std::pair<const char*, const char*> kDefaults[] = {{"torch_dtype", "bfloat16"},
                                                               {"lora_r", "8"},
                                                               {"per_device_train_batch_size", "4"},
                                                               {"max_length", "2048"},
                                                               {"gradient_checkpointing", "false"}};
  const Entry *const grad = document.find("grad_checkpoint"), *const type = document.find("fine_tune_type");
  const bool full = type && type->text() == "full";
  renamed.entries.push_back(made(renamed.entries.front(), "use_peft", full ? "false" : "true"));
  if (grad) renamed.entries.push_back(made(*grad, "gradient_checkpointing", "true"));
  for (const auto& [key, value] : kDefaults)
    if (!renamed.has(key)) renamed.entries.push_back(made(renamed.entries.front(), key, value));
  renamed.notes.emplace_back("MLX trains it on Apple's devices; the figures are of PyTorch");
}

}  // namespace

bool mixes_in_own_words(const Document& document) {
  if (document.syntax == Syntax::python) return false;
  // "lora: {r: 16}": read by the Trainer's names alone it would be full fine-tuning.
  const auto is_rank = [](const Entry& entry) {
    return (entry.leaf() == "r" || entry.leaf() == "rank") && is_of_lora(section_of(entry));
  };
  const auto is_method = [](const Entry& entry) {  // a fork's of LLaMA-Factory
    const std::string value = lower(entry.text());
    return entry.path == "finetuning_type" && (value.starts_with("lora") || value.starts_with("qlora"));
  };
  if (std::ranges::any_of(document.entries, [&](const Entry& entry) { return is_rank(entry) || is_method(entry); }))
    return true;
  return std::ranges::any_of(document.entries, [](const Entry& entry) { return holds(kNobodyElses, entry.leaf()); });
}

std::optional<Document> by_trainers_names(const Document& document, bool trains) {
  const bool script = document.syntax == Syntax::shell, mlx = script && runs_mlx(document);
  if (!script && document.syntax != Syntax::yaml && document.syntax != Syntax::json) return std::nullopt;
  Document renamed = document;
  renamed.entries.clear();
  size_t known = 0, own_named = 0;
  const int64_t accumulation = micro_batches(document);
  bool own = script || document.has("dataset_path") || mixes_in_own_words(document), model = false, lora = false,
       none = false, method = false;
  for (const Entry& entry : document.entries) {
    if (!model && names_model(document, entry)) {
      own = own || entry.path != "model_name_or_path";
      model = true;
      take_model(entry, document, renamed);
      continue;
    }
    if (accumulation > 0 && is_of_a_step(entry.leaf()) && !is_elsewhere(entry.parent())) {
      if (!document.has("gradient_accumulation_steps"))
        renamed.entries.push_back(made(entry, "gradient_accumulation_steps", std::to_string(accumulation)));
      continue;
    }
    if (holds(kBits, entry.leaf()) && is_switched_off(document, entry)) continue;
    std::vector<Entry> told = spelled_out(entry);
    const std::string_view name = told.empty() ? trainers_name(entry) : std::string_view();
    if (!name.empty()) {
      told.push_back(entry);
      told.back().path = name;
      own_named += name != entry.leaf() ? 1 : 0;
    }
    own = own || (!told.empty() && entry.path.find('.') != std::string::npos);  // in sections of its own
    for (Entry& one : told) {
      ++known;
      // What is loaded in four bits cannot be trained but by an adapter.
      lora =
          lora || one.path == "lora_r" || one.path == "lora_alpha" || (one.path == "load_in_4bit" && one.text() == "true");
      none = none || (one.path == "lora_r" && one.text() == "0");  // as TOFU's scripts say "full"
      method = method || one.path == "use_peft";
      renamed.entries.push_back(std::move(one));
    }
    if (told.empty() && entry.kind == EntryKind::scalar) renamed.entries.push_back(entry);
  }
  if (const std::optional<Entry> length = length_of_both(document)) {
    renamed.entries.push_back(*length);
    own_named += 1;
    known += 1;
  }
  const bool plainly = model ? own && known >= (is_named_for_training(document) ? 1U
                                                : script                        ? 2U
                                                                                : 3U)
                             : !script && own_named >= 2 && known >= 4;  // the model stands elsewhere
  if (!plainly && !((trains || mlx) && model)) return std::nullopt;
  if (mlx) add_mlx_defaults(document, renamed);
  if (!script) add_meant_bits(document, renamed);
  add_verls_defaults(document, renamed);
  if (none) std::erase_if(renamed.entries, [](const Entry& entry) { return entry.path.starts_with("lora_"); });
  if (lora && !method && !mlx) renamed.entries.push_back(made(renamed.entries.front(), "use_peft", none ? "false" : "true"));
  return renamed;
}

}  // namespace snug::dialects
