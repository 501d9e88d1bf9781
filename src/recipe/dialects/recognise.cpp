// Which trainer a file is written for: by its command, else by what the dialects make of its keys.

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "recipe/dialects/own_words.h"
#include "recipe/dialects/reading.h"
#include "recipe/foreign_keys.h"
#include "recipe/keys.h"

namespace snug {

namespace dialects {

bool has_any(const Document& document, std::initializer_list<std::string_view> paths) {
  return std::any_of(paths.begin(), paths.end(), [&](std::string_view path) { return document.has(path); });
}

size_t count_of_keys(const Document& document, std::initializer_list<std::string_view> paths) {
  return static_cast<size_t>(
      std::count_if(paths.begin(), paths.end(), [&](std::string_view path) { return document.has(path); }));
}

bool sounds_like_training(std::string_view name) {
  constexpr std::string_view kParts[] = {"train", "tun", "sft", "dpo", "ppo", "grpo", "lora"};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

bool script_says(const Document& document, std::string_view part) {
  return document.syntax == Syntax::shell && document.command[1].find(part) != std::string::npos;
}

bool trains_images(const Document& document) {
  return document.has("pretrained_model_name_or_path") && has_any(document, {"resolution", "train_batch_size"});
}

}  // namespace dialects

namespace {

using dialects::Document;
using dialects::Entry;
using dialects::has_any;

bool has_sections(const Document& document) {
  return std::ranges::any_of(document.entries, [](const Entry& entry) { return entry.kind == dialects::EntryKind::map; });
}

// Keys that our own reader neither takes nor passes over: one may be a slip of the pen, several are somebody's own.
int64_t strange_keys(const Document& document) {
  const auto is_strange = [](const Entry& entry) {
    if (find_key(entry.path) != nullptr) return false;
    try {
      return !pass_over_foreign_key(entry.path, entry.values);
    } catch (const Error&) {
      return false;
    }
  };
  return std::ranges::count_if(document.entries, is_strange);
}

bool has_strange_keys(const Document& document) { return has_sections(document) || strange_keys(document) >= 2; }

// The Trainer's names alone, which are ours too, and among them so many of somebody's own that no slip made them.
bool extends_the_trainers(const Document& document) {
  return document.has("output_dir") && document.has("per_device_train_batch_size") && strange_keys(document) >= 3;
}

// A key that no other trainer has: the file is one of ours, which has no sections.
bool is_ours(const Document& document) {
  if (has_sections(document)) return false;
  const Entry* data = document.find("data");
  // Ours are YAML.
  const bool yaml = document.syntax == dialects::Syntax::yaml;
  const bool names_file = yaml && data && data->kind == dialects::EntryKind::scalar && data->values.size() == 1;
  const Entry* const method = document.find("method");
  constexpr std::string_view kMethods[] = {"full", "lora", "qlora", "dora"};
  const bool our_method = yaml && method && strange_keys(document) < 3 &&
                          std::ranges::find(kMethods, dialects::lower(method->text())) != std::end(kMethods);
  const bool in_own_words = dialects::mixes_in_own_words(document) && strange_keys(document) >= 2;
  return (names_file && !in_own_words && !extends_the_trainers(document)) || our_method ||
         has_any(document, {"eval_data", "memory", "memory_budget", "checkpoint_layers"}) ||
         (document.has("dataset_format") && !has_strange_keys(document));
}

// "batch_size" without a word of what a GPU takes at once, and without sections, which torchtune and others have: old PPO's
// have more of them.
bool says_rows_alone(const Document& document) {
  const bool file = document.syntax == dialects::Syntax::yaml || document.syntax == dialects::Syntax::json;
  return file && document.has("batch_size") && document.has("learning_rate") && !has_sections(document) &&
         !has_any(document, {"per_device_train_batch_size", "mini_batch_size", "micro_batch_size", "ppo_epochs",
                             "sequence_len", "model_name_or_path"});
}

// Read in its own words: the Trainer's leave its model, or some of what matters, unsaid.
bool speaks_for_itself(const Document& document) {
  if (is_ours(document) || !what_else(document).empty()) return false;
  const bool names_model = has_any(document, {"model_name_or_path", "model_name", "base_model", "model_id"});
  return (dialects::mixes_in_own_words(document) || !names_model) && dialects::by_trainers_names(document).has_value();
}

std::string_view otherwise(const Document& document, Dialect dialect) {
  const auto use = dialects::rules_of(dialect).otherwise;
  return use ? use(document) : std::string_view();
}

struct Stranger {
  std::string_view what;
  std::vector<std::string_view> any, all;   // keys that it has
  std::vector<std::string_view> none = {};  // … and has not
};

const std::vector<Stranger>& strangers() {
  static const std::vector<Stranger> list = {
      {"a DeepSpeed configuration", {"zero_optimization", "zero_optimization.stage", "train_micro_batch_size_per_gpu"}, {}},
      {"an accelerate configuration", {"distributed_type", "compute_environment", "num_machines"}, {}},
      {"an FSDP configuration", {"fsdp_transformer_layer_cls_to_wrap", "fsdp_version", "reshard_after_forward"}, {}},
      {"an FSDP configuration", {}, {"fsdp", "fsdp_config"}, {"per_device_train_batch_size", "model_name_or_path"}},
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

// Whose tool a script runs; none for scripts of Python's around transformers.
std::optional<Dialect> by_tool(const Document& document) {
  for (const Dialect dialect : dialects::kDialects)
    for (const dialects::Tool& tool : dialects::rules_of(dialect).tools)
      if (tool.program == document.command[0]) return dialect;
  return std::nullopt;
}

}  // namespace

std::string what_else(const Document& document) {
  const auto has = [&](std::string_view path) { return document.has(path); };
  if (trains_images(document)) return "for training a model of images";
  for (const Dialect dialect : dialects::kDialects)
    if (const std::string_view use = otherwise(document, dialect); !use.empty()) return std::string(use);
  for (const Stranger& stranger : strangers())
    if (std::all_of(stranger.all.begin(), stranger.all.end(), has) &&
        (stranger.any.empty() || std::any_of(stranger.any.begin(), stranger.any.end(), has)) &&
        std::none_of(stranger.none.begin(), stranger.none.end(), has))
      return std::string(stranger.what);
  const bool lists_data = std::any_of(document.entries.begin(), document.entries.end(), [](const Entry& entry) {
    return entry.leaf() == "hf_hub_url" || entry.leaf() == "file_name" || entry.leaf() == "script_url";
  });
  return lists_data ? "a list of data sets" : "";
}

std::optional<Dialect> recognise(const Document& document) {
  using dialects::Claim;
  if (document.by_python()) return by_tool(document).value_or(Dialect::hugging_face);
  const bool script = document.syntax == dialects::Syntax::shell;
  if (script)
    if (const auto dialect = by_tool(document)) return dialect;
  Claim best = Claim::none;
  std::optional<Dialect> found;
  for (const Dialect dialect : dialects::kDialects) {
    if (!script && !otherwise(document, dialect).empty()) return std::nullopt;
    const Claim claim = dialects::rules_of(dialect).claims(document);
    if (claim <= best) continue;
    best = claim;
    found = dialect;
  }
  if (!script && best < Claim::certain && is_ours(document)) return std::nullopt;
  // verl's, whatever its modules are called.
  if (script && has_any(document, {"actor_rollout_ref.model.path", "model.partial_pretrain"})) return std::nullopt;
  if (found == Dialect::hugging_face && speaks_for_itself(document)) return std::nullopt;
  if (found == Dialect::trl && says_rows_alone(document) && dialects::by_trainers_names(document)) return std::nullopt;
  return found;
}

// "MODEL_NAME", "LORA_RANK": as constants of a script are written.
bool is_in_capitals(const Document& document) {
  constexpr size_t kFewest = 4;
  return document.syntax != dialects::Syntax::shell && document.entries.size() >= kFewest &&
         std::ranges::all_of(document.entries, [](const Entry& entry) {
           return std::ranges::none_of(entry.path, [](char c) { return c >= 'a' && c <= 'z'; });
         });
}

bool leaves_model_to_others(const Document& document) {
  return document.has("per_device_train_batch_size") && !is_ours(document) &&
         !has_any(document, {"model", "model_name_or_path", "model_name", "base_model", "model_id"});
}

std::optional<ForeignRecipe> read_in_own_words(const Document& given) {
  Document document = given;
  if (is_in_capitals(document))
    for (Entry& entry : document.entries) entry.path = dialects::lower(entry.path);
  if (is_ours(document) || !what_else(document).empty()) return std::nullopt;
  if (document.has("model") && document.syntax == dialects::Syntax::yaml && !has_strange_keys(document)) return std::nullopt;
  const auto renamed = dialects::by_trainers_names(document, extends_the_trainers(document));
  if (!renamed) return std::nullopt;
  ForeignRecipe recipe = read_foreign(*renamed, Dialect::hugging_face);
  recipe.notes.emplace_back("its keys are of its own; read by the names of Hugging Face's Trainer");
  return recipe;
}

}  // namespace snug
