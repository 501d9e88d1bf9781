// Python script or notebook -> Document: the literal arguments of the calls that load a model, quantize it, adapt it and
// train it. Of several such calls those count that the first trainer was given. Nothing is run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "recipe/dialects/document.h"
#include "recipe/dialects/notebook.h"
#include "recipe/dialects/python_files.h"
#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

constexpr size_t kEnd = ~size_t{0};

using Kind = PythonValue::Kind;

struct Argument {
  std::string name;  // "" of a positional one
  size_t at = 0;     // token where its value begins
  PythonValue value;
  Span span;  // of the name, else of the value
};

struct Call {
  std::string path;    // "AutoModelForCausalLM.from_pretrained"
  size_t at = 0;       // its first token
  std::string target;  // the first name that its statement binds; "" if none
  std::vector<Argument> arguments;

  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  std::string_view owner() const {
    const size_t dot = path.rfind('.');
    const std::string_view rest = dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
    return rest.substr(rest.rfind('.') + 1);
  }
  const Argument* find(std::string_view key) const {
    const auto found = std::ranges::find(arguments, key, &Argument::name);
    return found == arguments.end() ? nullptr : &*found;
  }
};

bool loads_model(const Call& call) {
  const std::string owner = lower(call.owner());
  return call.name() == "from_pretrained" && owner.find("peft") == std::string::npos &&
         (owner.find("model") != std::string::npos || owner.find("forcausallm") != std::string::npos);
}
// PeftModel.from_pretrained(model, adapter): one that was trained before goes on.
bool loads_adapter(const Call& call) {
  return call.name() == "from_pretrained" && lower(call.owner()).find("peft") != std::string::npos;
}
bool quantizes(const Call& call) { return call.name() == "BitsAndBytesConfig"; }
bool adapts(const Call& call) {
  return call.name() == "LoraConfig" || (call.name() == "get_peft_model" && call.owner().starts_with("Fast"));
}
bool has_settings(const Call& call) {
  constexpr std::array<std::string_view, 9> kConfigs = {"SFTConfig",    "DPOConfig", "ORPOConfig",
                                                        "KTOConfig",    "CPOConfig", "GRPOConfig",
                                                        "RewardConfig", "GKDConfig", "OnlineDPOConfig"};
  return call.name().ends_with("TrainingArguments") || std::ranges::find(kConfigs, call.name()) != kConfigs.end();
}
bool trains(const Call& call) {
  const bool ours = call.owner().empty() || call.owner() == "trl" || call.owner() == "transformers";
  return ours && call.name().ends_with("Trainer") && call.name()[0] >= 'A' && call.name()[0] <= 'Z';
}
bool loads_data(const Call& call) { return call.name() == "load_dataset"; }
// tokenizer(…, max_length=…), AutoTokenizer.from_pretrained(…, model_max_length=…), tok(…, truncation=True, max_length=…)
bool tokenizes(const Call& call) {
  return lower(call.path).find("tokeniz") != std::string::npos || (call.find("truncation") && call.find("max_length"));
}
// Transformers' Trainer, or a class of the script's own that is made of it: rows are as long as they come.
bool of_plain_trainer(const Call& trainer) {
  constexpr std::array<std::string_view, 8> kOfTrl = {"SFT", "DPO", "ORPO", "KTO", "CPO", "GRPO", "PPO", "Reward"};
  return std::ranges::none_of(kOfTrl,
                              [&](std::string_view part) { return trainer.name().find(part) != std::string_view::npos; });
}

class PythonScript {
 public:
  PythonScript(const std::string& source, const std::string& where)
      : files_(where), tokens_(python_tokens(source, where)), values_(tokens_, &files_) {
    size_t statement = 0;
    for (size_t at = 0; at + 1 < tokens_.size(); ++at) {
      if (at > 0 && tokens_[at - 1].kind == PythonKind::line_end) statement = at;
      if (tokens_[at].kind != PythonKind::name || (at > 0 && tokens_[at - 1].is("."))) continue;
      if (at > 0 && (tokens_[at - 1].is_word("def") || tokens_[at - 1].is_word("class"))) continue;
      look_at(at, statement);
    }
  }

  bool imports(std::string_view module) {
    for (size_t at = 0; at + 1 < tokens_.size(); ++at)
      if ((tokens_[at].is_word("import") || tokens_[at].is_word("from")) && tokens_[at + 1].is_word(module))
        if (values_.runs(at) != false) return true;
    return false;
  }

  // What a name is bound to, wherever.
  PythonValue bound(const std::string& name) { return values_.bound(name); }

  // Whether one of these is called before `before`; none: only Python knows.
  template <size_t N>
  std::optional<bool> calls(const std::array<std::string_view, N>& names, size_t before) {
    std::optional<bool> called = false;
    for (size_t at = 0; at + 1 < std::min(before, tokens_.size()); ++at) {
      const bool defined = at > 0 && tokens_[at - 1].is_word("def");
      if (defined || !tokens_[at + 1].is("(") || std::ranges::find(names, tokens_[at].text) == names.end()) continue;
      const std::optional<bool> runs = values_.runs(at);
      if (runs == true) return true;
      if (!runs) called = std::nullopt;
    }
    return called;
  }

  // Whether the call's statement is run; none: only Python knows.
  std::optional<bool> runs(const Call& call) { return values_.runs(call.at); }

  // The longest rows that a tokenizer is asked for before `before`: an argument, and whether there is one that is not known.
  std::pair<const Argument*, bool> longest_rows(size_t before) const {
    const Argument* longest = nullptr;
    bool unknown = false;
    for (const Call& call : calls_) {
      if (!tokenizes(call) || call.at > before) continue;
      for (const char* name : {"max_length", "model_max_length"}) {
        const Argument* argument = call.find(name);
        if (!argument || argument->value.kind == Kind::none) continue;
        unknown = unknown || argument->value.kind != Kind::number;
        if (argument->value.kind == Kind::number &&
            (!longest || std::stod(argument->value.text) > std::stod(longest->value.text)))
          longest = argument;
      }
    }
    return {longest, unknown};
  }

  template <class Is>
  const Call* first(const Is& is) const {
    const auto found = std::ranges::find_if(calls_, is);
    return found == calls_.end() ? nullptr : &*found;
  }

  // The call that an argument stands for: it is there itself, or its name was bound to one; else the last before `before`.
  template <class Is>
  const Call* given(const Argument* argument, const Is& is, size_t before) const {
    const Call* last = nullptr;
    const Call* bound = nullptr;
    for (const Call& call : calls_) {
      if (!is(call)) continue;
      if (argument && call.at == argument->at) return &call;
      if (call.at > before) continue;
      last = &call;
      const bool named = argument && tokens_[argument->at].kind == PythonKind::name;
      if (named && call.target == tokens_[argument->at].text) bound = &call;
    }
    return bound ? bound : last;
  }

  // The one such call, wherever it stands; null if there are more.
  template <class Is>
  const Call* only(const Is& is) const {
    const Call* const found = first(is);
    return std::ranges::count_if(calls_, is) == 1 ? found : nullptr;
  }

  // Files beside it that say something.
  const std::vector<std::string>& files_read() const { return files_.used(); }

 private:
  // `statement`: where the one around begins.
  // Whatever it is called: no other call is told how to truncate.
  bool asks_a_tokenizer(size_t open) const {
    constexpr size_t kFar = 64;
    bool truncates = false, says_length = false;
    for (size_t at = open + 1; at + 1 < std::min(tokens_.size(), open + kFar) && tokens_[at].kind != PythonKind::line_end;
         ++at)
      if (tokens_[at + 1].is("=")) {
        truncates = truncates || tokens_[at].is_word("truncation");
        says_length = says_length || tokens_[at].is_word("max_length");
      }
    return truncates && says_length;
  }

  void look_at(size_t at, size_t statement) {
    Call call{.path = tokens_[at].text, .at = at};
    size_t open = at + 1;
    while (open + 1 < tokens_.size() && tokens_[open].is(".") && tokens_[open + 1].kind == PythonKind::name) {
      call.path += "." + tokens_[open + 1].text;
      open += 2;
    }
    if (open >= tokens_.size() || !tokens_[open].is("(")) return;
    if (!loads_model(call) && !quantizes(call) && !adapts(call) && !has_settings(call) && !trains(call) &&
        !loads_data(call) && !tokenizes(call) && !loads_adapter(call) && !asks_a_tokenizer(open))
      return;
    if (values_.runs(at) == false) return;
    if (statement < at && tokens_[statement].kind == PythonKind::name) call.target = tokens_[statement].text;
    read_arguments(open, call);
    calls_.push_back(std::move(call));
  }

  void read_arguments(size_t open, Call& call) {
    size_t end = open;
    values_.pass_brackets(end);
    for (size_t at = open + 1; at + 1 < end;) {
      Argument argument;
      const bool spread = tokens_[at].is("**");
      if (spread) ++at;
      argument.span = tokens_[at].span;
      if (!spread && tokens_[at].kind == PythonKind::name && tokens_[at + 1].is("=")) {
        argument.name = tokens_[at].text;
        at += 2;
      }
      argument.at = at;
      argument.value = values_.value(at);
      if (spread) {
        for (const auto& [name, value] : argument.value.members)
          call.arguments.push_back({name, argument.at, value, value.literal ? value.span : argument.span});
      } else {
        call.arguments.push_back(std::move(argument));
      }
      ++at;
    }
  }

  PythonFiles files_;
  std::vector<PythonToken> tokens_;
  PythonValues values_;
  std::vector<Call> calls_;
};

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
constexpr std::array<std::string_view, 3> kAdapts = {"get_peft_model", "add_adapter", "inject_adapter_in_model"};

constexpr std::array<std::string_view, 3> kSwitchesCheckpointing = {
    "gradient_checkpointing_enable", "prepare_model_for_kbit_training", "prepare_model_for_int8_training"};

// Of which a reader must be told when only Python knows it.
constexpr auto kMatter = std::to_array<std::string_view>({"model_name_or_path",
                                                          "per_device_train_batch_size",
                                                          "gradient_accumulation_steps",
                                                          "max_seq_length",
                                                          "max_length",
                                                          "lora_r",
                                                          "lora_alpha",
                                                          "lora_target_modules",
                                                          "modules_to_save",
                                                          "use_dora",
                                                          "load_in_4bit",
                                                          "load_in_8bit",
                                                          "torch_dtype",
                                                          "dtype",
                                                          "optim",
                                                          "bf16",
                                                          "fp16",
                                                          "gradient_checkpointing",
                                                          "use_gradient_checkpointing",
                                                          "packing",
                                                          "deepspeed",
                                                          "fsdp"});

class Entries {
 public:
  Entries(Document& document, bool in_place) : document_(document), in_place_(in_place) {}

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
      if (!argument.name.empty() && argument.value.kind != Kind::dict) add(argument.name, argument);
  }

  void add(std::string path, const Argument& argument) {
    const PythonValue& value = argument.value;
    if (!value.known()) {
      if (std::ranges::find(kMatter, path) != kMatter.end()) document_.unread.push_back(path);
      return;
    }
    if (value.kind == Kind::dict || document_.has(path)) return;
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
    entry.line =
        std::count(begin, begin + static_cast<std::ptrdiff_t>(std::min(span.begin, document_.text.size())), '\n') + 1;
    entry.name = span;
    return entry;
  }

  Document& document_;
  bool in_place_;
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

// Of settings from outside: defaults of a class or a parser, which the command line may change.
void take_defaults(PythonScript& script, Document& document, Entries& entries) {
  document.unread.emplace_back("the trainer's settings");
  for (const std::string_view key : kMatter)
    if (const PythonValue value = script.bound(std::string(key)); value.known())
      entries.add(std::string(key), {std::string(key), 0, value, value.span});
}

// A model that is loaded where nobody sees with what: the script's own name for it, by that name.
void take_named_model(PythonScript& script, const Document& document, Entries& entries) {
  for (const char* name : {"base_model", "BASE_MODEL", "model_id", "MODEL_ID", "model_name", "MODEL_NAME", "MODEL_PATH"})
    if (const PythonValue value = script.bound(name);
        value.kind == Kind::text && value.text.find('/') != std::string::npos && !document.has("model_name_or_path"))
      return entries.add(name, {name, 0, value, value.span});
}

void read_script(bool in_place, Document& document) {
  PythonScript script(document.text, document.where);
  const Call* const trainer = script.first([](const Call& call) { return trains(call) && !call.arguments.empty(); });
  const size_t before = trainer ? trainer->at : kEnd;
  const auto argument = [](const Call* call, std::string_view name, size_t place = kEnd) -> const Argument* {
    if (!call) return nullptr;
    const bool by_place = place < call->arguments.size() && call->arguments[place].name.empty();
    return by_place ? &call->arguments[place] : call->find(name);
  };
  const Call* const settings = script.given(argument(trainer, "args", 1), has_settings, before);
  const Call* const before_trainer = script.given(argument(trainer, "model", 0), loads_model, before);
  const Call* const loading = before_trainer || !trainer ? before_trainer : script.only(loads_model);  // by a function below
  if ((!settings && !trainer) || (!trainer && !loading))
    throw Error("nothing in it trains with transformers' Trainer or one made of it", document.where,
                "snug reads TrainingArguments or SFTConfig, from_pretrained, LoraConfig and BitsAndBytesConfig");
  const Call* const quantization =
      quantization_of(script, loading, {argument(settings, "model_init_kwargs"), argument(trainer, "model_init_kwargs")});
  const Argument* const peft = argument(trainer, "peft_config");
  const bool given_adapter = !trainer || (peft && peft->value.kind != Kind::none);
  std::optional<bool> adapted = given_adapter ? std::optional(true) : script.calls(kAdapts, before);
  const Call* const loaded = script.given(nullptr, loads_adapter, before);
  const bool goes_on = adapted == false && loaded && loaded->at < before;
  if (goes_on) adapted = true;
  const Call* const adapter = adapted != false ? script.given(peft, adapts, before) : nullptr;

  const bool unsloth = script.imports("unsloth");
  const std::string of_settings(settings ? settings->name() : "TrainingArguments");
  const bool trl = of_settings.ends_with("Config");  // whose defaults are TRL's
  const char* const program = unsloth ? "unsloth" : trl ? "trl" : "python";
  document.command = {program, stage_of(trainer, settings), of_settings};

  Entries entries(document, in_place);
  if (const Argument* model = model_of(loading, trainer)) entries.add("model_name_or_path", *model);
  entries.take(loading, kOfModel);
  entries.take_members(argument(settings, "model_init_kwargs"), kOfModel);
  entries.take_members(argument(trainer, "model_init_kwargs"), kOfModel);
  entries.take(quantization, kOfQuantization);
  const Call* const somewhere = settings ? settings : trainer;
  const Span settings_at = somewhere->arguments.empty() ? Span{} : somewhere->arguments.front().span;
  if (adapted != false && (adapter || goes_on || script.calls(kAdapts, before) != false) && !unsloth)
    entries.say("use_peft", "true", settings_at);
  if (!adapter && adapted != false)  // made in another file
    for (const char* key : {"lora_r", "lora_alpha", "lora_target_modules"}) document.unread.emplace_back(key);
  if (adapter && !adapted) document.unread.emplace_back("use_peft");
  if (quantization && !script.runs(*quantization)) document.unread.emplace_back("load_in_4bit");
  if (!unsloth && script.calls(kSwitchesCheckpointing, before) != false)
    entries.say("gradient_checkpointing", "true", settings_at);
  entries.take(adapter, kOfAdapter);
  entries.take_all(settings);
  if (trainer && !settings) take_defaults(script, document, entries);  // HfArgumentParser's, a factory's
  entries.take(trainer, kOfTrainer);
  if (!unsloth && !trl && trainer) take_rows(script, before, of_plain_trainer(*trainer), document, entries);
  const Argument* const data = argument(script.first(loads_data), "path", 0);
  if (data && data->value.kind == Kind::text) entries.add("dataset_name", *data);
  take_named_model(script, document, entries);
  document.beside = script.files_read();
}

}  // namespace

Document read_python(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::python, .text = std::string(text), .where = where};
  read_script(true, document);
  return document;
}

Document read_notebook(std::string_view text, const std::string& where) {
  Document document{.syntax = Syntax::python, .text = code_of_notebook(text, where), .where = where};
  read_script(false, document);
  return document;
}

}  // namespace snug::dialects
