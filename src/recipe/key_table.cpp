#include "recipe/key_table.h"

#include <algorithm>
#include <limits>

#include "recipe/bytes.h"
#include "recipe/checkpoint_keys.h"
#include "recipe/foreign_keys.h"
#include "recipe/key_makers.h"
#include "recipe/offload_keys.h"
#include "recipe/parallel_keys.h"
#include "recipe/quantize_keys.h"
#include "recipe/schedule_keys.h"
#include "recipe/strategy_keys.h"

namespace snug {

namespace {

using namespace keys;  // NOLINT(google-build-using-namespace): the table speaks the makers' language

constexpr int64_t kMostTokens = std::numeric_limits<int32_t>::max();
constexpr int64_t kAnyInteger = std::numeric_limits<int64_t>::max();
constexpr double kBelowOne = 0x1.fffffffffffffp-1;
constexpr double kLeastPositive = std::numeric_limits<double>::min();

// PEFT compares the end of a module's path; of these the last part says as much.
std::string by_its_last_part(const std::string& target) {
  constexpr std::string_view kOfAttention[] = {"q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "dense", "out_proj"};
  constexpr std::string_view kOfMlp[] = {"gate_proj", "up_proj", "down_proj", "gate_up_proj", "fc1", "fc2"};
  const size_t dot = target.find('.');
  if (dot == std::string::npos) return target;
  const std::string_view of = std::string_view(target).substr(0, dot), last = std::string_view(target).substr(dot + 1);
  const bool attention = of == "self_attn" || of == "attention" || of == "attn";
  if ((attention && std::ranges::find(kOfAttention, last) != std::end(kOfAttention)) ||
      (of == "mlp" && std::ranges::find(kOfMlp, last) != std::end(kOfMlp)))
    return std::string(last);
  return target;
}

Key lora_target_modules() {
  Key key = list(
      "lora_target_modules", {"target_modules", "lora_target"},
      "Modules that get an adapter, by the last part of their name.", "q_proj,v_proj,… or all-linear",
      [](auto& r) -> auto& { return r.lora.target_modules; });
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    set(recipe, values);
    std::vector<std::string>& targets = recipe.lora.target_modules;
    if (targets == std::vector<std::string>{"all"}) targets = {"all-linear"};
    std::ranges::transform(targets, targets.begin(), by_its_last_part);
  };
  return key;
}

Key rank_pattern() {
  return patterns(
      "rank_pattern", {"lora_rank_pattern"}, "Ranks of single modules, by the end of their path.",
      "q_proj=16,mlp.up_proj=4,…",
      [](const std::string& text) { return parse_integer("rank_pattern", text, 1, kMostTokens); },
      [](auto& r) -> auto& { return r.lora.rank_pattern; });
}

Key alpha_pattern() {
  return patterns(
      "alpha_pattern", {"lora_alpha_pattern"}, "lora_alpha of single modules, by the end of their path.",
      "q_proj=32,mlp.up_proj=8,…",
      [](const std::string& text) { return parse_number("alpha_pattern", text, kLeastPositive, kUnbounded); },
      [](auto& r) -> auto& { return r.lora.alpha_pattern; });
}

Key master_weights() {
  return {"master_weights",
          {},
          KeyType::boolean,
          "Keep an fp32 copy of bf16 or f16 weights in full fine-tuning; auto keeps it.",
          "auto|true|false",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("master_weights", values);
            recipe.master_weights = word == kAuto ? std::nullopt : std::optional(parse_boolean("master_weights", word));
          },
          [](const Recipe& recipe) {
            return std::string(!recipe.master_weights ? kAuto : *recipe.master_weights ? "true" : "false");
          }};
}

// A fraction below 1 is a ratio of all steps, as in transformers 5.
Key max_steps() {
  Key key = integer("max_steps", {"iters"}, "Optimizer steps; -1 lets num_train_epochs decide.",
                    {-1, kMostSteps, "-1 or at least 1"}, &Recipe::max_steps);
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    Recipe trial;
    set(trial, values);
    if (trial.max_steps == 0) throw Error("max_steps is 0", "", "give -1 to let num_train_epochs decide, or at least 1");
    recipe.max_steps = trial.max_steps;
  };
  return key;
}

// bitsandbytes' paged optimizers, under Hugging Face's names.
struct Paged {
  std::string_view word;
  Optimizer optim;
};
constexpr Paged kPaged[] = {
    {"paged_adamw_32bit", Optimizer::adamw}, {"paged_adamw", Optimizer::adamw}, {"paged_adamw_8bit", Optimizer::adamw_8bit},
    {"paged_lion_32bit", Optimizer::lion},   {"paged_lion", Optimizer::lion},   {"paged_lion_8bit", Optimizer::lion_8bit}};

Key or_paged(Key key) {
  for (const Paged& paged : kPaged) key.words.push_back(paged.word);
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    const std::string& word = single_value("optim", values);
    const auto* paged = std::find_if(std::begin(kPaged), std::end(kPaged), [&](const Paged& p) { return p.word == word; });
    recipe.pages_states = paged != std::end(kPaged);
    if (!recipe.pages_states) return set(recipe, values);
    recipe.optim = paged->optim;
  };
  key.get = [get = key.get](const Recipe& recipe) {
    for (const Paged& paged : kPaged)
      if (recipe.pages_states && paged.optim == recipe.optim) return std::string(paged.word);
    return get(recipe);
  };
  return key;
}

// Hugging Face's Trainer reads momentum from here; what else it would take for other optimizers is refused by name.
Key optim_args() {
  return {"optim_args",
          {},
          KeyType::text,
          "For optim: sgd, momentum=M keeps a velocity of each weight.",
          "momentum=0.9",
          [](Recipe& recipe, KeyValues values) {
            recipe.momentum = 0.0;
            if (values.empty() || (values.size() == 1 && means_off(values[0]))) return;
            for (const std::string& word : parse_list("optim_args", values)) {
              constexpr std::string_view kName = "momentum=";
              if (!word.starts_with(kName))
                throw Error(fmt::format("optim_args '{}' is not supported", word), "", "give momentum=0.9, or leave it out");
              recipe.momentum = parse_number("optim_args momentum", word.substr(kName.size()), 0.0, kBelowOne);
            }
          },
          [](const Recipe& recipe) {
            return recipe.momentum == 0.0 ? std::string() : fmt::format("momentum={}", recipe.momentum);
          }};
}

Key resume_from_checkpoint() {
  Key key = text("resume_from_checkpoint", {}, "A checkpoint directory, or true for the newest in output_dir.",
                 "true|false|DIRECTORY", &Recipe::resume_from_checkpoint);
  key.set = [set = key.set](Recipe& recipe, KeyValues values) {
    set(recipe, values);
    if (recipe.resume_from_checkpoint == "false") recipe.resume_from_checkpoint.clear();
  };
  return key;
}

Key save_total_limit() {
  return {"save_total_limit",
          {},
          KeyType::integer,
          "Newest checkpoints that are kept, older ones are removed; none keeps all.",
          "none or at least 1",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("save_total_limit", values);
            const bool all = word == "none" || word == "None" || word == "null";
            recipe.save_total_limit = all ? 0 : parse_integer("save_total_limit", word, 0, kMostSteps);
          },
          [](const Recipe& recipe) {
            return recipe.save_total_limit == 0 ? std::string("none") : fmt::format("{}", recipe.save_total_limit);
          }};
}

// Services that Hugging Face's Trainer reports to and snug does not: such a recipe runs, and says so.
constexpr std::string_view kServices[] = {"wandb",   "mlflow",  "comet_ml",   "swanlab", "trackio", "clearml",
                                          "dagshub", "neptune", "codecarbon", "dvclive", "flyte",   "azure_ml"};

bool is_other_service(const std::string& word) {
  return std::find(std::begin(kServices), std::end(kServices), word) != std::end(kServices);
}

Key report_to() {
  return {"report_to",
          {},
          KeyType::list,
          "Where metrics go beside metrics.jsonl: event files for TensorBoard.",
          "none|tensorboard",
          [](Recipe& recipe, KeyValues values) {
            recipe.tensorboard = false;
            for (const std::string& word : parse_list("report_to", values)) {
              if (word == "tensorboard" || word == "all") {
                recipe.tensorboard = true;
              } else if (word != "none" && !is_other_service(word)) {
                throw Error(fmt::format("report_to '{}' is not known", word), "", "choose none or tensorboard");
              }
            }
          },
          [](const Recipe& recipe) { return std::string(recipe.tensorboard ? "tensorboard" : "none"); },
          [](KeyValues values) {
            const std::vector<std::string> words = parse_list("report_to", values);
            return std::any_of(words.begin(), words.end(), is_other_service);
          },
          [] {
            Names words(std::begin(kServices), std::end(kServices));
            words.emplace_back("all");
            return words;
          }()};
}

Key seed() {
  return {"seed",
          {},
          KeyType::integer,
          "Seed of every random choice.",
          "at least 0",
          [](Recipe& recipe, KeyValues values) {
            recipe.seed = static_cast<uint64_t>(parse_integer("seed", single_value("seed", values), 0, kAnyInteger));
          },
          [](const Recipe& recipe) { return fmt::format("{}", recipe.seed); }};
}

Key memory() {
  return {"memory",
          {"memory_budget"},
          KeyType::size,
          "Memory budget; auto is what this machine can give.",
          "auto|24GB|24GiB|123456789B",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("memory", values);
            const int64_t bytes = word == kAuto ? 0 : parse_bytes(word);
            if (word != kAuto && bytes == 0) throw Error("memory is 0", "", "give a size such as 24GB, or auto");
            recipe.memory_bytes = bytes;
          },
          [](const Recipe& recipe) {
            return recipe.memory_bytes == 0 ? std::string(kAuto) : fmt::format("{}B", recipe.memory_bytes);
          }};
}

// Keys that say in another trainer's words what one of ours says; they are never written.

Key use_peft() {
  return {"use_peft",
          {},
          KeyType::boolean,
          "TRL's word for method: lora (true) or full (false).",
          "true|false",
          [](Recipe& recipe, KeyValues values) {
            recipe.method = parse_boolean("use_peft", single_value("use_peft", values)) ? Method::lora : Method::full;
          },
          {}};
}

Key train_on_inputs() {
  return {"train_on_inputs",
          {"train_on_prompt"},
          KeyType::boolean,
          "The opposite of completion_only_loss.",
          "true|false",
          [](Recipe& recipe, KeyValues values) {
            recipe.completion_only_loss = !parse_boolean("train_on_inputs", single_value("train_on_inputs", values));
          },
          {}};
}

Key torch_dtype() {
  return {"torch_dtype",
          {"dtype"},
          KeyType::choice,
          "bfloat16 is our bf16: true, float16 our fp16: true; auto leaves them to decide.",
          "auto|bfloat16|float16",
          [](Recipe& recipe, KeyValues values) {
            const std::string& word = single_value("torch_dtype", values);
            if (word == kAuto) return;
            if (word != "bfloat16" && word != "float16")
              throw Error(fmt::format("torch_dtype '{}': the keys bf16 and fp16 decide the dtypes", word), "",
                          "set bf16 or fp16: true or false");
            (word == "float16" ? recipe.fp16 : recipe.bf16) = true;
          },
          {}};
}

}  // namespace

namespace {

std::vector<Key> main_keys() {  // NOLINT(readability-function-size): a table
  constexpr std::string_view kNoOptimizer = "not supported yet";
  const Integers count = {1, kMostTokens, "at least 1"};
  return {
      text("model_name_or_path", {"model", "base_model"}, "Checkpoint directory, config.json or catalogue name.",
           "PATH or NAME", &Recipe::model),
      texts("data", {"train_file", "train_data"},
            "Training rows: a JSONL, JSON, CSV, Parquet or Arrow file, a directory of them, a pattern, a data set's name; "
            "or several.",
            "PATH or NAME", &Recipe::data),
      texts("eval_data", {"validation_file", "eval_file"}, "Rows for evaluation; empty for none.", "FILE",
            &Recipe::eval_data),
      number("val_size", {"val_set_size", "test_size", "split_dataset_ratio"},
             "Rows of data held out for evaluation: a number of rows, or below 1 a share of them.",
             {0.0, 1e15, "at least 0"}, &Recipe::val_size),
      text("dataset_format", {}, "What the rows are, where their columns do not tell.",
           "text|prompt_completion|messages|conversations|instruction|question_answer|dolly|query_response",
           &Recipe::dataset_format),
      text("dataset_text_field", {"text_column"}, "The column of text rows.", "NAME", &Recipe::text_column),
      text("prompt_column", {"field_instruction"}, "The column of prompts.", "NAME", &Recipe::prompt_column),
      text("completion_column", {"response_column", "field_output"}, "The column of completions.", "NAME",
           &Recipe::completion_column),
      text("messages_column", {"field_messages"}, "The column of conversations.", "NAME", &Recipe::messages_column),
      text("chat_template", {"chat_template_path"}, "Template for conversations: a file, or chatml; empty for the model's.",
           "FILE", &Recipe::chat_template),
      boolean("assistant_only_loss", {}, "For conversations: loss on what the assistant says alone.",
              &Recipe::assistant_only_loss),
      boolean("skip_bad_rows", {}, "Leave bad rows out instead of refusing the file.", &Recipe::skip_bad_rows),
      text("adapter_name_or_path", {"adapter_path"}, "PEFT adapter to start from; empty for a fresh one.", "DIRECTORY",
           &Recipe::adapter),
      text("output_dir", {"output"}, "Directory for checkpoints, metrics and the result.", "DIRECTORY", &Recipe::output_dir),

      method_key(),
      use_peft(),
      integer(
          "lora_r", {"lora_rank"}, "Rank of the adapter.", count, [](auto& r) -> auto& { return r.lora.r; }),
      number(
          "lora_alpha", {}, "The adapter's output is scaled by lora_alpha / lora_r.",
          {kLeastPositive, kUnbounded, "above 0"}, [](auto& r) -> auto& { return r.lora.alpha; }),
      number(
          "lora_dropout", {}, "Share of the adapter's inputs that is left out in training, at random.",
          {0.0, kBelowOne, "from 0 to less than 1"}, [](auto& r) -> auto& { return r.lora.dropout; }),
      boolean(
          "use_rslora", {"peft_use_rslora"}, "Scale the adapter by lora_alpha / sqrt(lora_r) (rank-stabilized LoRA).",
          [](auto& r) -> auto& { return r.lora.use_rslora; }),
      boolean(
          "use_dora", {"peft_use_dora"}, "Train the lengths of weight rows apart from their directions (DoRA).",
          [](auto& r) -> auto& { return r.lora.use_dora; }),
      rank_pattern(),
      alpha_pattern(),
      lora_target_modules(),
      list(
          "lora_modules_to_save", {"modules_to_save", "additional_target"}, "Modules trained in full beside the adapter.",
          "embed_tokens,lm_head,…", [](auto& r) -> auto& { return r.lora.modules_to_save; }),

      boolean("bf16", {}, "bf16 weights and saved activations, sums in fp32.", &Recipe::bf16),
      torch_dtype(),
      boolean("fp16", {}, "f16 weights and saved activations, sums in fp32, the loss scaled against underflow.",
              &Recipe::fp16),
      integer("initial_scale_power", {}, "With fp16: the loss is scaled by 2 to this power at first.",
              {0, 24, "from 0 to 24"}, &Recipe::initial_scale_power),
      integer("loss_scale_window", {}, "With fp16: steps without overflow after which the scale doubles.",
              {1, kMostSteps, "at least 1"}, &Recipe::loss_scale_window),
      master_weights(),

      integer("per_device_train_batch_size", {"micro_batch_size", "batch", "batch_size"}, "Sequences in one micro-batch.",
              count, &Recipe::batch),
      integer("gradient_accumulation_steps", {"accum", "accumulation", "grad_accumulation_steps"},
              "Micro-batches in one optimizer step.", count, &Recipe::accumulation),
      integer("max_length", {"max_seq_length", "cutoff_len", "sequence_len", "seq", "seq_len", "max_seq_len"},
              "Longest sequence in tokens; auto is 1024 or the model's limit.", {2, kMostTokens, "auto or at least 2", true},
              &Recipe::seq_len),
      boolean("packing", {"sample_packing"}, "Fill each sequence with several rows.", &Recipe::packing),
      boolean("shuffle", {}, "Shuffle the rows in every epoch.", &Recipe::shuffle),
      boolean("completion_only_loss", {"mask_prompt", "train_on_completions"},
              "For prompt and completion rows: loss on the completion alone.", &Recipe::completion_only_loss),
      train_on_inputs(),

      or_paged(choice<Optimizer>(
          "optim", {"optimizer"},
          "The optimizer: adamw_torch, adamw_bf16_states, adamw_8bit, adafactor, lion_32bit, lion_8bit or sgd; of a paged "
          "one the states lie on disk.",
          "adamw_torch|adamw_bf16_states|adamw_8bit|adafactor|lion_32bit|lion_8bit|sgd|paged_adamw_32bit|paged_adamw_8bit|"
          "paged_lion_32bit|paged_lion_8bit",
          {{"adamw_torch", Optimizer::adamw},
           {"adamw_torch_fused", Optimizer::adamw},
           {"adamw", Optimizer::adamw},
           {"adamw_hf", Optimizer::adamw},
           {"sgd", Optimizer::sgd},
           {"lion_32bit", Optimizer::lion},
           {"lion", Optimizer::lion},
           {"lion_8bit", Optimizer::lion_8bit},
           {"adamw_8bit", Optimizer::adamw_8bit},
           {"adamw_bnb_8bit", Optimizer::adamw_8bit},
           {"adamw_bf16_states", Optimizer::adamw_bf16},
           {"adafactor", Optimizer::adafactor},
           {"adamw_torch_4bit", {}, kNoOptimizer},
           {"adamw_torch_8bit", {}, kNoOptimizer},
           {"adam", {}, kNoOptimizer},
           {"muon", {}, kNoOptimizer}},
          &Recipe::optim)),
      optim_args(),
      number("learning_rate", {"lr"}, "Peak learning rate; auto is 5e-5 for full, 2e-4 for LoRA.",
             {kLeastPositive, kUnbounded, "auto or above 0", true}, &Recipe::learning_rate),
      number("adam_beta1", {}, "Decay of the first moment.", {0.0, kBelowOne, "from 0 to less than 1"}, &Recipe::adam_beta1),
      number("adam_beta2", {}, "Decay of the second moment.", {0.0, kBelowOne, "from 0 to less than 1"},
             &Recipe::adam_beta2),
      number("adam_epsilon", {}, "Added to the root of the second moment.", {0.0, kUnbounded, "at least 0"},
             &Recipe::adam_epsilon),
      number("weight_decay", {}, "Decoupled weight decay; with sgd it is added to the gradient.",
             {0.0, kUnbounded, "at least 0"}, &Recipe::weight_decay),
      number("max_grad_norm", {"gradient_clipping"}, "Gradients are scaled down to this norm; 0 for never.",
             {0.0, kUnbounded, "at least 0"}, &Recipe::max_grad_norm),
      number("neftune_noise_alpha", {},
             "Noise on embeddings in training, up to this / sqrt(seq_len * hidden_size) (NEFTune).",
             {0.0, kUnbounded, "at least 0"}, &Recipe::neftune_noise_alpha),
      boolean("optimizer_in_bwd", {"optimizer_in_backward"},
              "Update each weight as soon as its gradient is complete, so that gradients never exist together.",
              &Recipe::optimizer_in_bwd),
      choice<LossNormalization>("loss_normalization", {}, "What a window's summed loss is divided by.",
                                "huggingface|targets|unshifted",
                                {{"huggingface", LossNormalization::targets},
                                 {"targets", LossNormalization::targets},
                                 {"unshifted", LossNormalization::unshifted}},
                                &Recipe::loss_normalization),

      max_steps(),
      number("num_train_epochs", {"epochs", "num_epochs"}, "Passes over the data where max_steps is -1.",
             {kLeastPositive, 1e9, "above 0"}, &Recipe::num_train_epochs),
      integer("save_steps", {"save_every"}, "Steps between checkpoints; 0 for one at the end.",
              {0, kMostSteps, "at least 0"}, &Recipe::save_steps),
      save_total_limit(),
      boolean("save_only_model", {}, "Checkpoints without the optimizer's states: less disk, but no run goes on from them.",
              &Recipe::save_only_model),
      integer("logging_steps", {}, "Steps between lines of metrics.jsonl, and of the log where no terminal is.",
              {1, kMostSteps, "at least 1"}, &Recipe::logging_steps),
      report_to(),
      text("logging_dir", {}, "Directory of TensorBoard's event files; empty for runs in output_dir.", "DIRECTORY",
           &Recipe::logging_dir),
      integer("eval_steps", {}, "Steps between evaluations; 0 for one after the last.", {0, kMostSteps, "at least 0"},
              &Recipe::eval_steps),
      boolean("eval_on_start", {}, "Evaluate before the first step too.", &Recipe::eval_on_start),
      resume_from_checkpoint(),
      boolean("overwrite_output_dir", {}, "Start anew where output_dir already holds a run.", &Recipe::overwrite_output_dir),
      seed(),

      memory(),
      integer("threads", {}, "Threads of the kernels; auto is the cores this process may use.",
              {1, 4096, "auto or at least 1", true}, &Recipe::threads),
  };
}

}  // namespace

std::vector<Key> make_key_table() {
  std::vector<Key> table = main_keys();
  const auto insert_after = [&](std::string_view name, const std::vector<Key>& keys) {
    table.insert(std::ranges::find(table, name, &Key::name) + 1, keys.begin(), keys.end());
  };
  insert_after("lora_modules_to_save", quantize_keys());
  insert_after("train_on_inputs", checkpoint_keys());
  insert_after("tiled_mlp_num_shards", offload_keys());
  insert_after("optimizer_in_bwd", schedule_keys());
  insert_after("eval_on_start", strategy_keys());
  insert_after("seed", parallel_keys());
  return table;
}

}  // namespace snug
