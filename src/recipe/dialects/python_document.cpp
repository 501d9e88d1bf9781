// Python script or notebook -> Document: the literal arguments of the calls that load a model, quantize it, adapt it and
// train it. Of several such calls those count that the first trainer was given. Nothing is run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "recipe/dialects/beside.h"
#include "recipe/dialects/document.h"
#include "recipe/dialects/handed_on.h"
#include "recipe/dialects/notebook.h"
#include "recipe/dialects/own_words.h"
#include "recipe/dialects/python_entries.h"
#include "recipe/dialects/python_loop.h"
#include "recipe/dialects/python_script.h"
#include "recipe/dialects/reading.h"
#include "recipe/dialects/started_script.h"

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;
constexpr size_t kEnd = PythonScript::kEnd;

constexpr std::array<Renamed, 11> kOfAdapter = {{{"r", "lora_r"},
                                                 {"lora_alpha", "lora_alpha"},
                                                 {"lora_dropout", "lora_dropout"},
                                                 {"target_modules", "lora_target_modules"},
                                                 {"modules_to_save", "modules_to_save"},
                                                 {"use_rslora", "use_rslora"},
                                                 {"use_dora", "use_dora"},
                                                 {"use_gradient_checkpointing", "use_gradient_checkpointing"},
                                                 {"init_lora_weights", "init_lora_weights"},
                                                 {"rank_pattern", "rank_pattern"},
                                                 {"loftq_config", "loftq_config"}}};
constexpr std::array<Renamed, 9> kOfModel = {{{"torch_dtype", "torch_dtype"},
                                              {"dtype", "dtype"},
                                              {"attn_implementation", "attn_implementation"},
                                              {"max_seq_length", "max_seq_length"},
                                              {"load_in_4bit", "load_in_4bit"},
                                              {"load_in_8bit", "load_in_8bit"},
                                              {"full_finetuning", "full_finetuning"},
                                              {"fast_inference", "fast_inference"},
                                              {"rope_scaling", "rope_scaling"}}};
constexpr std::array<Renamed, 5> kOfQuantization = {{{"load_in_4bit", "load_in_4bit"},
                                                     {"load_in_8bit", "load_in_8bit"},
                                                     {"bnb_4bit_quant_type", "bnb_4bit_quant_type"},
                                                     {"bnb_4bit_use_double_quant", "bnb_4bit_use_double_quant"},
                                                     {"bnb_4bit_compute_dtype", "bnb_4bit_compute_dtype"}}};
constexpr std::array<Renamed, 4> kOfTrainer = {{{"max_seq_length", "max_seq_length"},
                                                {"max_length", "max_length"},
                                                {"packing", "packing"},
                                                {"dataset_text_field", "dataset_text_field"}}};
constexpr std::array<std::string_view, 3> kSwitchesCheckpointing = {
    "gradient_checkpointing_enable", "prepare_model_for_kbit_training", "prepare_model_for_int8_training"};

// Which model, given by its place or by name.
const Argument* model_of(const Call* loading, const Call* trainer) {
  if (loading)
    for (const Argument& argument : loading->arguments)
      if (argument.name.empty() || argument.name == "model_name" || argument.name == "pretrained_model_name_or_path")
        return &argument;
  const Argument* given = trainer ? trainer->find("model") : nullptr;  // SFTTrainer loads it itself
  return given && given->value.kind == Kind::text ? given : nullptr;
}

std::string stage_of(const Call* trainer, const Call* settings) {
  const std::string names = fmt::format("{} {}", trainer ? trainer->name() : "", settings ? settings->name() : "");
  for (const auto& [part, stage] :
       {std::pair("DPO", "dpo"), std::pair("KTO", "kto"), std::pair("ORPO", "orpo"), std::pair("CPO", "cpo"),
        std::pair("GRPO", "grpo"), std::pair("PPO", "ppo"), std::pair("Reward", "reward"), std::pair("GKD", "gkd")})
    if (names.find(part) != std::string::npos) return stage;
  return "sft";
}

// The configuration that loading is given, by itself or in a dict; null where it is given none.
const Call* quantization_of(const PythonScript& script, const Call* loading, std::initializer_list<const Argument*> dicts) {
  if (const Argument* given = loading ? loading->find("quantization_config") : nullptr) {
    if (given->value.kind == Kind::none) return nullptr;
    const Call* const found = script.given(given, quantizes, loading->at);
    return found ? found : script.first_elsewhere([&](const Call& call) {  // of several the one of its file
      return quantizes(call) && call.file == loading->file;
    });
  }
  for (const Argument* dict : dicts)
    if (dict &&
        std::ranges::find(dict->value.members, "quantization_config", &PythonMember::name) != dict->value.members.end())
      return script.given(nullptr, quantizes, dict->at);
  return nullptr;
}

// Rows are as long as the tokenizer is asked for; TRL's trainers have a length of their own where it is not.
void take_rows(PythonScript& script, size_t before, bool plain, Document& document, Entries& entries) {
  const auto says = [&](const char* key) { return document.has(key) && !document.find(key)->values.empty(); };
  if (says("max_length") || says("max_seq_length")) return;
  const auto [rows, unknown] = script.longest_rows(before);
  if (rows) entries.add("max_length", *rows);
  // Texts that are joined and cut, as transformers' run_clm.py does.
  const PythonValue block = rows || !plain ? PythonValue() : script.bound("block_size");
  if (block.kind == Kind::number) return entries.add("max_length", {"block_size", 0, block, block.span});
  if (unknown || (plain && !rows)) document.unread.emplace_back("max_length");
}

// A model that is loaded where nobody sees with what: the script's own name for it, by that name, or what one of its
// functions is given by it.
void take_named_model(PythonScript& script, const Document& document, Entries& entries) {
  if (document.has("model_name_or_path")) return;
  const auto names_model = [](const PythonValue& value) {
    const bool word = value.text.find_first_of(" \n") == std::string::npos;
    return value.kind == Kind::text && word && value.text.find_first_of("/0123456789") != std::string::npos;
  };
  constexpr std::array<const char*, 12> kNames = {"base_model",      "BASE_MODEL",      "model_id",
                                                  "MODEL_ID",        "model_name",      "MODEL_NAME",
                                                  "MODEL_PATH",      "model_path",      "model_name_or_path",
                                                  "base_model_name", "base_model_path", "pretrained_model_name_or_path"};
  for (const char* name : kNames)
    if (const PythonValue value = script.bound(name); names_model(value))
      return entries.add("model_name_or_path", {name, 0, value, value.span});
  for (const char* name : kNames)
    if (const PythonValue value = script.keyword(name); names_model(value))
      return entries.add("model_name_or_path", {name, 0, value, value.span});
}

// TRL's DPOTrainer and KTOTrainer take a reference model before their settings.
size_t place_of_settings(const Call* trainer) {
  const bool refers = trainer && (trainer->name().find("DPO") != std::string_view::npos ||
                                  trainer->name().find("KTO") != std::string_view::npos);
  return refers ? 2 : 1;
}

// The calls that matter, each of which may be missing.
struct Parts {
  const Call* trainer = nullptr;
  const Call* settings = nullptr;
  const Call* loading = nullptr;
  const Call* quantization = nullptr;
  const Call* adapter = nullptr;
  std::optional<bool> adapted;  // none: only Python knows
  bool goes_on = false;         // with an adapter that was trained before
  bool by_options = false;      // TRL's get_peft_config(model_args): options decide whether there is an adapter
  size_t before = kEnd;         // where training begins
  size_t reached = kEnd;        // the same where it stands in a function: where that is called

  bool found() const { return (settings || trainer) && (trainer || loading); }
};

const Call* loading_of(const PythonScript& script, const Call* trainer, size_t before) {
  const Call* loading = script.given(argument_of(trainer, "model", 0), loads_model, before);
  if (!loading && trainer) loading = script.only(loads_model);  // by a function below
  const auto loads_known = [](const Call& call) {
    const std::string target = lower(call.target);
    const bool beside = target.find("teacher") != std::string::npos || target.find("ref") != std::string::npos;
    return loads_model(call) && !beside && !call.arguments.empty() && call.arguments.front().value.known();
  };
  const Call* const first = trainer ? nullptr : script.first(loads_known);
  if (first) loading = first;  // later ones look at the result, in modules too
  return loading ? loading : script.first_elsewhere(loads_known);
}

Parts parts_of(PythonScript& script) {
  Parts parts;
  const bool lightning = script.imports("pytorch_lightning") || script.imports("lightning");
  parts.trainer = script.first([&](const Call& call) {
    return trains(call) && !call.arguments.empty() && !script.is_own_trainer(call) &&
           !(lightning && call.name() == "Trainer");
  });
  const Call* const trainer = parts.trainer;
  if (trainer) parts.before = trainer->at;
  parts.reached = trainer && trainer->at != kEnd ? script.reached(trainer->at) : parts.before;
  parts.settings = script.given(argument_of(trainer, "args", place_of_settings(trainer)), has_settings, parts.before);
  parts.loading = loading_of(script, trainer, parts.before);
  parts.quantization = quantization_of(
      script, parts.loading, {argument_of(parts.settings, "model_init_kwargs"), argument_of(trainer, "model_init_kwargs")});
  const Argument* const peft = argument_of(trainer, "peft_config");
  constexpr std::array<std::string_view, 1> kByOptions = {"get_peft_config"};
  parts.by_options = script.calls(kByOptions, kEnd) != false && !script.defines(kByOptions.front());
  const bool given = !trainer || (peft && peft->value.kind != Kind::none);
  if (parts.by_options) {
    parts.adapted = truth_of(script.bound("use_peft")).value_or(false);
  } else {
    parts.adapted = given && (trainer || parts.settings) ? std::optional(true) : script.calls(kAdapts, parts.reached);
    if (parts.adapted == false) parts.adapted = script.calls_elsewhere(wraps);
  }
  const Call* const loaded = script.given(nullptr, loads_adapter, parts.before);
  const bool of_another =
      loaded && loaded->at == kEnd && parts.loading && parts.loading->at != kEnd;  // a reward's, a judge's
  parts.goes_on = parts.adapted == false && loaded && !of_another && (loaded->at < parts.before || parts.before == kEnd);
  if (parts.goes_on) parts.adapted = true;
  if (loaded && !parts.quantization && (parts.goes_on || !parts.loading))  // it loads the base too
    parts.quantization = quantization_of(script, loaded, {});
  if (parts.adapted != false && !parts.by_options) parts.adapter = script.given(peft, adapts, parts.reached);
  return parts;
}

// Of settings from outside: defaults of a class or a parser, which the command line may change.
void take_defaults(PythonScript& script, const Parts& parts, bool started, Document& document, Entries& entries) {
  if (!started) document.unread.emplace_back("the trainer's settings");
  for (const std::string_view key : kMatter) {
    if (parts.adapted == false && key.starts_with("lora_")) continue;
    PythonValue value = script.assigned(key);
    if (!value.known()) value = script.bound(std::string(key));
    if (value.known()) entries.add(std::string(key), {std::string(key), 0, value, value.span});
  }
}

// The settings' class: of the call that makes them, else one that the script has a parser make.
std::string settings_of(const PythonScript& script, const Call* settings) {
  if (settings) return std::string(settings->name());
  const auto named = std::ranges::find_if(kConfigs, [&](std::string_view name) { return script.mentions(name); });
  return named == kConfigs.end() ? "TrainingArguments" : std::string(*named);
}

void take_adapter(PythonScript& script, const Parts& parts, bool unsloth, Document& document, Entries& entries) {
  const Call* const somewhere = parts.settings ? parts.settings : parts.trainer ? parts.trainer : parts.loading;
  const Span at = somewhere->arguments.empty() ? Span{} : somewhere->arguments.front().span;
  const bool made = parts.adapter || parts.goes_on || script.calls(kAdapts, parts.reached) != false;
  if (parts.adapted != false && made && !unsloth && !parts.by_options) entries.say("use_peft", "true", at);
  if (parts.by_options && parts.adapted == true) {
    entries.say("use_peft", "true", at);
    for (const char* key : {"lora_r", "lora_alpha", "lora_target_modules", "load_in_4bit", "load_in_8bit"})
      if (const PythonValue value = script.bound(key); value.known()) entries.add(key, {key, 0, value, value.span});
  }
  if (!parts.adapter && parts.adapted != false && !parts.by_options)  // made in another file
    for (const char* key : kOfPair) document.unread.emplace_back(key);
  const bool hidden = !parts.loading && parts.trainer && !parts.trainer->find("model_init_kwargs") &&
                      parts.adapted == false &&
                      !argument_of(parts.trainer, "peft_config");  // a function that is not seen makes the model
  if (hidden && model_of(nullptr, parts.trainer) == nullptr && !unsloth) document.unread.emplace_back("use_peft");
  if ((parts.adapter && !parts.adapted) || (parts.by_options && !script.bound("use_peft").known()))
    document.unread.emplace_back("use_peft");
  if (parts.quantization && !parts.quantization->run) document.unread.emplace_back("load_in_4bit");
  if (!unsloth && script.calls(kSwitchesCheckpointing, parts.before) != false)
    entries.say("gradient_checkpointing", "true", at);
  entries.take(parts.adapter, kOfAdapter);
  if (parts.adapter && parts.adapter->spreads)
    for (const char* key : kOfPair)
      if (!document.has(key)) document.unread.emplace_back(key);
}

// Where the calls say no model: the settings that the script loads, by the names that they have there.
void take_settings(PythonScript& script, Document& document) {
  if (document.has("model_name_or_path")) return;
  for (const std::string& name : script.settings_files()) {
    const auto text = read_beside(document.where, name, static_cast<int64_t>(kLargestDocumentBytes), Look::by_last_name);
    if (!text) continue;
    Document settings;
    try {
      settings = name.ends_with(".json") ? read_json(*text, name) : read_yaml(*text, name);
      if (const auto path = find_beside(document.where, name, Look::by_last_name)) settings.where = path->string();
      script.choose_groups(settings);
    } catch (const Error&) {
      continue;
    }
    if (std::optional<Document> renamed = by_trainers_names(settings, true)) settings = std::move(*renamed);
    if (!settings.has("model_name_or_path")) continue;
    for (Entry& entry : settings.entries) {
      const bool matters = entry.path == "use_peft" || std::ranges::find(kMatter, entry.path) != kMatter.end();
      if (!matters || document.has(entry.path)) continue;
      std::erase(document.unread, entry.path);
      entry.in_place = false;
      entry.line = 0;
      entry.name = entry.value = {};
      document.entries.push_back(std::move(entry));
    }
    if (std::ranges::find(document.beside, name) == document.beside.end()) document.beside.push_back(name);
    document.notes.push_back("what the script makes of its settings is not seen: taken by the names that they have in " +
                             name);
    return;
  }
}

// A loop of one's own around a model of transformers'.
bool is_loop(const PythonScript& script, const Parts& parts) {
  return !parts.trainer && !parts.settings && parts.loading && script.has_loop();
}

void read_script(bool in_place, Document& document, PythonFlags* flags = nullptr, FlagsOfKeys* of_keys = nullptr) {
  PythonScript script(document.text, document.where, flags);
  Parts parts = parts_of(script);
  if (!parts.trainer && !is_loop(script, parts) && script.enter_module()) parts = parts_of(script);
  const bool loop = is_loop(script, parts);
  if (!parts.found() && !loop)
    throw Error("nothing in it trains with transformers' Trainer or one made of it", document.where,
                "snug reads TrainingArguments or SFTConfig, from_pretrained, LoraConfig and BitsAndBytesConfig");
  const Call *const trainer = parts.trainer, *const settings = parts.settings;
  const bool unsloth = script.imports("unsloth");
  const std::string of_settings = settings_of(script, settings);
  const bool trl = of_settings.ends_with("Config");  // whose defaults are TRL's
  const char* const program = unsloth ? "unsloth" : trl ? "trl" : "python";
  document.command = {program, stage_of(trainer, settings), of_settings};

  Entries entries(document, in_place && !script.in_module(), of_keys);
  if (const Argument* model = model_of(parts.loading, trainer)) entries.add("model_name_or_path", *model);
  entries.take(parts.loading, kOfModel);
  entries.take_members(argument_of(settings, "model_init_kwargs"), kOfModel);
  entries.take_members(argument_of(trainer, "model_init_kwargs"), kOfModel);
  entries.take(parts.quantization, kOfQuantization);
  const Argument* const quantized = parts.loading ? parts.loading->find("quantization_config") : nullptr;
  const bool somehow = quantized && quantized->value.kind != Kind::none && !parts.quantization;
  if (parts.loading && (parts.loading->spreads || somehow) && !document.has("load_in_4bit"))
    document.unread.emplace_back("load_in_4bit");
  take_adapter(script, parts, unsloth, document, entries);
  entries.take_all(settings);
  const bool spreads = settings && settings->spreads;  // "**vars(args)"
  if (trainer && (!settings || spreads))
    take_defaults(script, parts, flags != nullptr, document, entries);  // HfArgumentParser's, a factory's
  if (loop) take_loop(script, document, entries);
  const bool freezes = parts.adapted == false && script.freezes();
  if (freezes && script.calls_own_lora())
    take_own_lora(script, document, entries);
  else if (freezes)
    document.notes.emplace_back("it freezes weights: which of them only Python knows; planned as if all were trained");
  entries.take(trainer, kOfTrainer);
  if (!unsloth && !trl && (trainer || loop))
    take_rows(script, parts.before, loop || of_plain_trainer(*trainer), document, entries);
  const Argument* const data = argument_of(script.first(loads_data), "path", 0);
  if (data && data->value.kind == Kind::text) entries.add("dataset_name", *data);
  take_named_model(script, document, entries);
  const Call* const tokenizer = script.first(loads_tokenizer);
  if (tokenizer && !tokenizer->arguments.empty() && tokenizer->arguments.front().value.kind == Kind::text)
    entries.add("tokenizer_name_or_path", tokenizer->arguments.front());
  for (const Call* call : {settings, parts.loading, parts.quantization, parts.adapter}) script.note_use(call);
  document.own_options = settings != nullptr || loop;
  document.beside = script.files_read();
  take_settings(script, document);
  std::ranges::copy(script.notes(), std::back_inserter(document.notes));
}

}  // namespace

StartedPython read_started_python(std::string_view text, const std::string& where, PythonFlags& flags) {
  StartedPython started{.document = {.syntax = Syntax::python, .text = std::string(text), .where = where}, .flags = {}};
  read_script(false, started.document, &flags, &started.flags);
  return started;
}

namespace {

// What JSON holds without escapes.
bool is_plain(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' '; });
}

// "json.dump(args, open("run.json", "w"))" as the shell would write that file, with what is known of the dict.
std::string files_of(PythonScript& script) {
  std::string shell;
  for (const auto& [name, settings] : script.files_written()) {
    std::string json;
    for (const auto& [key, value] : settings.members)
      if (value.kind == Kind::truth || value.kind == Kind::number || (value.kind == Kind::text && is_plain(value.text)))
        if (is_plain(key)) json += fmt::format(R"({}"{}": "{}")", json.empty() ? "" : ", ", key, value.text);
    shell += fmt::format("cat > {} << 'END_OF_CELL'\n{{{}}}\nEND_OF_CELL\n", name, json);
  }
  return shell;
}

// "HuggingFace(entry_point="train.py", source_dir="scripts", hyperparameters={…})": the job of SageMaker's estimator as the
// command that its machines run; "" where there is none.
std::string job_of(const PythonScript& script) {
  const Call* const job = script.first(starts_job);
  if (!job || !job->find("entry_point") || !job->find("hyperparameters")) return {};
  if (!is_plain(job->find("entry_point")->value.text)) return {};
  const Argument* const folder = job->find("source_dir");
  const bool has_folder = folder && folder->value.kind == Kind::text && is_plain(folder->value.text);
  std::string command = "python " + (has_folder ? folder->value.text + "/" : "") + job->find("entry_point")->value.text;
  for (const auto& [key, value] : job->find("hyperparameters")->value.members)
    if (is_plain(key) && is_plain(value.text) && value.text.find('\'') == std::string::npos && !value.text.empty())
      command += fmt::format(" --{} '{}'", key, value.text);
  return command + "\n";
}

// "llamafactory-cli train run.json" for settings of LLaMA-Factory's that a cell writes and none hands on.
std::string training_of_settings(PythonScript& script) {
  for (const auto& [name, settings] : script.files_written())
    if (std::ranges::count_if(settings.members, [](const PythonMember& member) {
          return member.name == "stage" || member.name == "do_train" || member.name == "model_name_or_path";
        }) == 3)
      return fmt::format("llamafactory-cli train {}\n", name);
  return {};
}

// What a shell is made to train; none where it trains nothing.
std::optional<Document> read_commands(const std::string& shell, const std::string& where, const char* why) {
  try {
    Document document = read_shell(shell, where);
    for (Entry& entry : document.entries) {
      entry.in_place = false;
      entry.line = 0;
    }
    document.notes.emplace_back(why);
    return document;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What a script or a notebook has other processes train: the commands of its cells, a job.
std::optional<Document> started_elsewhere(const std::string& code, const std::string& shell, const std::string& where) {
  PythonScript script(code, where);
  const std::string written = files_of(script), job = job_of(script);
  std::optional<Document> document;
  if (!shell.empty())
    document = read_commands(written + shell, where, "nothing in its Python trains: read by the commands of its cells");
  if (!document && !job.empty())
    document = read_commands(job, where, "nothing in its Python trains: read by the job that it starts");
  if (const std::string command = training_of_settings(script); !document && !command.empty())
    document = read_commands(written + command, where, "nothing in it trains: read by the settings that it writes");
  return document;
}

}  // namespace

Document read_python(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::python, .text = std::string(text), .where = where};
  try {
    read_script(true, document);
  } catch (const Error&) {
    std::optional<Document> started = started_elsewhere(document.text, {}, where);
    if (!started) throw;
    return *std::move(started);
  }
  return document;
}

Document read_notebook(std::string_view text, const std::string& where) {
  const NotebookCode notebook = code_of_notebook(text, where);
  Document document{.syntax = Syntax::python, .text = notebook.code, .where = where};
  document.notes = notebook.notes;
  try {
    read_script(false, document);
  } catch (const Error&) {
    std::optional<Document> started = started_elsewhere(notebook.code, notebook.shell, where);
    if (!started) throw;
    return *std::move(started);
  }
  return document;
}

}  // namespace snug::dialects
