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
#include "recipe/dialects/python_script.h"
#include "recipe/dialects/reading.h"
#include "recipe/dialects/started_script.h"

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;
constexpr size_t kEnd = PythonScript::kEnd;

// What an argument is called among a recipe's keys.
struct Renamed {
  std::string_view theirs, ours;
};
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

class Entries {
 public:
  Entries(Document& document, bool in_place, FlagsOfKeys* flags) : document_(document), in_place_(in_place), flags_(flags) {}

  template <size_t N>
  void take(const Call* call, const std::array<Renamed, N>& keys) {
    if (!call) return;
    for (const Argument& argument : call->arguments)
      if (const auto key = std::ranges::find(keys, argument.name, &Renamed::theirs);
          key != keys.end() && !argument.name.empty())
        add(std::string(key->ours), argument);
  }

  // Of a dict that is handed on.
  template <size_t N>
  void take_members(const Argument* dict, const std::array<Renamed, N>& keys) {
    if (!dict) return;
    for (const auto& [name, value] : dict->value.members)
      if (std::ranges::find(keys, name, &Renamed::theirs) != keys.end()) add(name, {name, dict->at, value, dict->span});
  }

  void take_all(const Call* call) {
    if (!call) return;
    for (const Argument& argument : call->arguments)
      if (!argument.name.empty() && argument.value.kind != Kind::dict && argument.value.kind != Kind::object)
        add(argument.name, argument);
  }

  void add(std::string path, const Argument& argument) {
    const PythonValue& value = argument.value;
    if (!value.known()) {
      if (std::ranges::find(kMatter, path) != kMatter.end()) document_.unread.push_back(path);
      return;
    }
    if (value.kind == Kind::dict || value.kind == Kind::object || document_.has(path)) return;
    if (flags_ && !value.flag.empty()) (*flags_)[path] = value.flag;
    if (value.of_several) document_.firsts.push_back(path);
    constexpr size_t kMostEntries = 1000;
    if (document_.entries.size() == kMostEntries)
      throw Error("the calls have too many arguments", document_.where, "is this a script that trains?");
    Entry entry = made(std::move(path), argument.span);
    entry.value = value.literal ? value.span : argument.span;
    entry.in_place = in_place_ && value.literal;
    if (value.kind == Kind::list) {
      entry.kind = EntryKind::list;
      for (const PythonValue& item : value.items) entry.values.push_back(item.text);
    } else if (value.kind != Kind::none) {
      entry.values = {value.text};
    }
    document_.entries.push_back(std::move(entry));
  }

  // What a call says by being there.
  void say(std::string path, std::string value, const Span& span) {
    Entry entry = made(std::move(path), span);
    entry.values = {std::move(value)};
    entry.value = span;
    document_.entries.push_back(std::move(entry));
  }

 private:
  Entry made(std::string path, const Span& span) const {
    Entry entry;
    entry.path = std::move(path);
    const auto begin = document_.text.begin();
    const auto at = static_cast<std::ptrdiff_t>(std::min(span.begin, document_.text.size()));
    if (span.end > span.begin) entry.line = std::count(begin, begin + at, '\n') + 1;  // else it stands in another file
    entry.name = span;
    return entry;
  }

  Document& document_;
  bool in_place_;
  FlagsOfKeys* flags_;
};

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
  if (const Argument* given = loading ? loading->find("quantization_config") : nullptr)
    return given->value.kind == Kind::none ? nullptr : script.given(given, quantizes, loading->at);
  for (const Argument* dict : dicts)
    if (dict &&
        std::ranges::find(dict->value.members, "quantization_config", &PythonMember::name) != dict->value.members.end())
      return script.given(nullptr, quantizes, dict->at);
  return nullptr;
}

// Rows are as long as the tokenizer is asked for; TRL's trainers have a length of their own where it is not.
void take_rows(PythonScript& script, size_t before, bool plain, Document& document, Entries& entries) {
  if (document.has("max_length") || document.has("max_seq_length")) return;
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

const Argument* argument_of(const Call* call, std::string_view name, size_t place = kEnd) {
  if (!call) return nullptr;
  if (const Argument* named = call->find(name)) return named;
  const bool by_place = place < call->arguments.size() && call->arguments[place].name.empty();
  return by_place ? &call->arguments[place] : nullptr;
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

Parts parts_of(PythonScript& script) {
  Parts parts;
  parts.trainer = script.first([](const Call& call) { return trains(call) && !call.arguments.empty(); });
  const Call* const trainer = parts.trainer;
  if (trainer) parts.before = trainer->at;
  parts.reached = trainer && trainer->at != kEnd ? script.reached(trainer->at) : parts.before;
  parts.settings = script.given(argument_of(trainer, "args", place_of_settings(trainer)), has_settings, parts.before);
  parts.loading = script.given(argument_of(trainer, "model", 0), loads_model, parts.before);
  if (!parts.loading && trainer) parts.loading = script.only(loads_model);  // by a function below
  const auto loads_known = [](const Call& call) {
    const std::string target = lower(call.target);
    const bool beside = target.find("teacher") != std::string::npos || target.find("ref") != std::string::npos;
    return loads_model(call) && !beside && !call.arguments.empty() && call.arguments.front().value.known();
  };
  if (!trainer)
    if (const Call* first = script.first(loads_known)) parts.loading = first;  // later ones look at the result
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
  parts.goes_on = parts.adapted == false && loaded && (loaded->at < parts.before || parts.before == kEnd);
  if (parts.goes_on) parts.adapted = true;
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

// What decides an adapter's bytes.
constexpr std::array<const char*, 3> kOfPair = {"lora_r", "lora_alpha", "lora_target_modules"};

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

// "with torch.autocast("cuda", dtype=torch.bfloat16):", on a GPU fp16 where no type is named.
void take_autocast(const PythonScript& script, Entries& entries) {
  const Call* const casts = script.first([](const Call& call) {
    const Argument* const enabled = argument_of(&call, "enabled");
    return call.name() == "autocast" && !(enabled && truth_of(enabled->value) == false);
  });
  if (!casts) return;
  const Argument* const type = argument_of(casts, "dtype", 1);
  const std::string name = type ? type->value.text : "float16";
  if (name == "bfloat16" || name == "float16") entries.say(name == "float16" ? "fp16" : "bf16", "true", {});
}

// What a loop of the script's own says that the trainer's settings say elsewhere.
void take_loop(PythonScript& script, Document& document, Entries& entries) {
  document.notes.emplace_back("it trains in a loop of its own: planned as the Trainer's, with what it loads");
  const auto of_training = [](const Call& call) {
    const std::string target = lower(call.target);
    const bool other = target.find("val") != std::string::npos || target.find("test") != std::string::npos ||
                       target.find("eval") != std::string::npos || target.find("dev") != std::string::npos;
    return makes_batches(call) && !other && argument_of(&call, "batch_size", 1);
  };
  if (const Call* loader = script.first(of_training))
    entries.add("per_device_train_batch_size", *argument_of(loader, "batch_size", 1));
  for (const char* name : {"gradient_accumulation_steps", "grad_accum_steps", "accumulation_steps", "grad_accum"})
    if (const PythonValue steps = script.bound(name); steps.kind == Kind::number)
      entries.add("gradient_accumulation_steps", {name, 0, steps, steps.span});
  if (const PythonValue parts = script.parts_of_loss(); parts.known())
    entries.add("gradient_accumulation_steps", {"loss", 0, parts, parts.span});
  const Call* const accelerator = script.first([](const Call& call) { return call.name() == "Accelerator"; });
  const Argument* const precision = argument_of(accelerator, "mixed_precision");
  if (precision && (precision->value.text == "bf16" || precision->value.text == "fp16"))
    entries.say(precision->value.text, "true", precision->span);
  else
    take_autocast(script, entries);
  if (const Argument* steps = argument_of(accelerator, "gradient_accumulation_steps"))
    entries.add("gradient_accumulation_steps", *steps);
  constexpr std::array<Renamed, 5> kOptimizers = {{{"AdamW8bit", "adamw_bnb_8bit"},
                                                   {"PagedAdamW8bit", "paged_adamw_8bit"},
                                                   {"PagedAdamW32bit", "paged_adamw_32bit"},
                                                   {"Adafactor", "adafactor"},
                                                   {"SGD", "sgd"}}};
  for (const auto& [theirs, ours] : kOptimizers)
    if (script.calls(std::array<std::string_view, 1>{theirs}, kEnd) != false)
      return entries.say("optim", std::string(ours), {});
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
      read_inherited(settings);
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
  return !parts.trainer && !parts.settings && parts.loading && script.mentions("backward");
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
  if (parts.loading && parts.loading->spreads && !document.has("load_in_4bit")) document.unread.emplace_back("load_in_4bit");
  take_adapter(script, parts, unsloth, document, entries);
  entries.take_all(settings);
  const bool spreads = settings && settings->spreads;  // "**vars(args)"
  if (trainer && (!settings || spreads))
    take_defaults(script, parts, flags != nullptr, document, entries);  // HfArgumentParser's, a factory's
  if (loop) take_loop(script, document, entries);
  if (parts.adapted == false && script.freezes())
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

Document read_python(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::python, .text = std::string(text), .where = where};
  read_script(true, document);
  return document;
}

StartedPython read_started_python(std::string_view text, const std::string& where, PythonFlags& flags) {
  StartedPython started{.document = {.syntax = Syntax::python, .text = std::string(text), .where = where}, .flags = {}};
  read_script(false, started.document, &flags, &started.flags);
  return started;
}

Document read_notebook(std::string_view text, const std::string& where) {
  NotebookCode notebook = code_of_notebook(text, where);
  Document document{.syntax = Syntax::python, .text = std::move(notebook.code), .where = where};
  document.notes = std::move(notebook.notes);
  read_script(false, document);
  return document;
}

}  // namespace snug::dialects
