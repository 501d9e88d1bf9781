#include "recipe/dialects/python_script.h"

#include <algorithm>

#include "recipe/dialects/reading.h"

namespace snug::dialects {

namespace {

using Kind = PythonValue::Kind;

// tokenizer(…, max_length=…), AutoTokenizer.from_pretrained(…, model_max_length=…), tok(…, truncation=True, max_length=…),
// ConstantLengthDataset(…, seq_length=…), which TRL had for rows that are joined and cut
bool tokenizes(const Call& call) {
  return lower(call.path).find("tokeniz") != std::string::npos || (call.find("truncation") && call.find("max_length")) ||
         call.name() == "ConstantLengthDataset";
}

// The calls of one file.
class CallsOf {
 public:
  CallsOf(const std::vector<PythonToken>& tokens, PythonValues& values) : tokens_(tokens), values_(values) {
    size_t statement = 0;
    for (size_t at = 0; at + 1 < tokens_.size(); ++at) {
      if (at > 0 && tokens_[at - 1].kind == PythonKind::line_end) statement = at;
      if (tokens_[at].kind != PythonKind::name || (at > 0 && tokens_[at - 1].is("."))) continue;
      if (at > 0 && (tokens_[at - 1].is_word("def") || tokens_[at - 1].is_word("class"))) continue;
      look_at(at, statement);
    }
  }

  std::vector<Call> calls;

 private:
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

  // `statement`: where the one around begins.
  void look_at(size_t at, size_t statement) {
    Call call{.path = tokens_[at].text, .at = at};
    size_t open = at + 1;
    while (open + 1 < tokens_.size() && tokens_[open].is(".") && tokens_[open + 1].kind == PythonKind::name) {
      call.path += "." + tokens_[open + 1].text;
      open += 2;
    }
    if (open >= tokens_.size() || !tokens_[open].is("(")) return;
    if (!loads_model(call) && !quantizes(call) && !adapts(call) && !has_settings(call) && !trains(call) &&
        !loads_data(call) && !tokenizes(call) && !loads_adapter(call) && !makes_batches(call) && !wraps(call) &&
        !starts_job(call) && call.name() != "Accelerator" && call.name() != "autocast" && !asks_a_tokenizer(open))
      return;
    call.run = values_.runs(at);
    if (call.run == false) return;
    if (statement < at && tokens_[statement].kind == PythonKind::name) call.target = tokens_[statement].text;
    read_arguments(open, call);
    calls.push_back(std::move(call));
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
        call.spreads = call.spreads || !argument.value.known();
        for (const auto& [name, value] : argument.value.members)
          call.arguments.push_back({name, argument.at, value, value.literal ? value.span : argument.span});
      } else {
        call.arguments.push_back(std::move(argument));
      }
      ++at;
    }
  }

  const std::vector<PythonToken>& tokens_;
  PythonValues& values_;
};

// Of another file: nothing of it can be changed in the script.
std::vector<Call> calls_elsewhere_of(const std::vector<PythonToken>& tokens, PythonValues& values) {
  std::vector<Call> calls = CallsOf(tokens, values).calls;
  for (Call& call : calls)
    for (Argument& argument : call.arguments) {
      argument.span = {};
      argument.value.literal = false;
    }
  return calls;
}

// Those that are imported, and those that they import.
std::vector<PythonModule*> modules_of(const PythonValues& values) {
  constexpr size_t kMostModules = 12;
  std::vector<PythonModule*> modules(values.modules());
  for (size_t i = 0; i < modules.size() && modules.size() < kMostModules; ++i)
    for (PythonModule* const next : modules[i]->values.modules())
      if (std::ranges::find(modules, next) == modules.end()) modules.push_back(next);
  modules.resize(std::min(modules.size(), kMostModules));
  return modules;
}

}  // namespace

std::string_view Call::owner() const {
  const size_t dot = path.rfind('.');
  const std::string_view rest = dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
  return rest.substr(rest.rfind('.') + 1);
}

const Argument* Call::find(std::string_view key) const {
  const auto found = std::ranges::find(arguments, key, &Argument::name);
  return found == arguments.end() ? nullptr : &*found;
}

bool loads_model(const Call& call) {
  const std::string owner = lower(call.owner());
  return call.name() == "from_pretrained" && owner.find("peft") == std::string::npos &&
         (owner.find("model") != std::string::npos || owner.find("forcausallm") != std::string::npos ||
          owner.find("forconditionalgeneration") != std::string::npos || owner.find("classification") != std::string::npos);
}
bool loads_adapter(const Call& call) {
  return call.name() == "from_pretrained" && lower(call.owner()).find("peft") != std::string::npos;
}
bool loads_tokenizer(const Call& call) {
  return call.name() == "from_pretrained" && lower(call.owner()).ends_with("tokenizer");
}
bool quantizes(const Call& call) { return call.name() == "BitsAndBytesConfig"; }
bool adapts(const Call& call) {
  return call.name() == "LoraConfig" || (call.name() == "get_peft_model" && call.owner().starts_with("Fast"));
}
bool has_settings(const Call& call) {
  return call.name().ends_with("TrainingArguments") ||
         std::ranges::any_of(kConfigs, [&](std::string_view name) { return call.name().ends_with(name); });
}
bool wraps(const Call& call) { return std::ranges::find(kAdapts, call.name()) != kAdapts.end(); }
bool trains(const Call& call) {
  const bool ours = call.owner().empty() || call.owner() == "trl" || call.owner() == "transformers";
  const size_t at = call.name().find("Trainer");  // "SFTTrainerWithSampling"
  if (!ours || at == std::string_view::npos || call.name()[0] < 'A' || call.name()[0] > 'Z') return false;
  return std::ranges::none_of(std::array<std::string_view, 5>{"Callback", "State", "Control", "Config", "Arg"},
                              [&](std::string_view other) { return call.name().find(other) != std::string_view::npos; });
}
bool loads_data(const Call& call) { return call.name() == "load_dataset"; }
bool makes_batches(const Call& call) { return call.name() == "DataLoader"; }
bool starts_job(const Call& call) {
  return call.name() == "HuggingFace" || call.name() == "PyTorch" || call.name().ends_with("Estimator");
}
bool of_plain_trainer(const Call& trainer) {
  constexpr std::array<std::string_view, 8> kOfTrl = {"SFT", "DPO", "ORPO", "KTO", "CPO", "GRPO", "PPO", "Reward"};
  return std::ranges::none_of(kOfTrl,
                              [&](std::string_view part) { return trainer.name().find(part) != std::string_view::npos; });
}

PythonScript::PythonScript(const std::string& source, const std::string& where, PythonFlags* flags)
    : files_(where, flags),
      tokens_(python_tokens(source, where)),
      values_(tokens_, files_.take_groups(tokens_)),
      here_tokens_(&tokens_),
      here_(&values_),
      calls_(CallsOf(tokens_, values_).calls) {
  look_at_modules();
}

// What the others say, the script itself among them where a module is looked at.
void PythonScript::look_at_modules() {
  elsewhere_.clear();
  const auto take = [&](std::vector<Call> calls, const PythonValues& values, const std::string& file) {
    for (Call& call : calls) {
      if (!is_used(values.function_around(call.at))) continue;
      call.at = kEnd;  // of another file
      call.file = file;
      for (Argument& argument : call.arguments) argument.at = kEnd;
      elsewhere_.push_back(std::move(call));
    }
  };
  if (in_module()) take(calls_elsewhere_of(tokens_, values_), values_, "");
  for (PythonModule* const module : modules_of(values_))
    if (&module->values != here_) take(calls_elsewhere_of(module->tokens, module->values), module->values, module->name);
}

// Whether any of the files speaks of a function but where it is defined; of none: what stands outside of functions is run.
bool PythonScript::is_used(const std::string& function) const {
  if (function.empty()) return true;
  const auto speaks = [&](const std::vector<PythonToken>& tokens) {
    for (size_t at = 0; at < tokens.size(); ++at)
      if (tokens[at].is_word(function) && (at == 0 || !tokens[at - 1].is_word("def"))) return true;
    return false;
  };
  if (speaks(tokens_)) return true;
  return std::ranges::any_of(modules_of(values_), [&](PythonModule* module) { return speaks(module->tokens); });
}

bool PythonScript::enter_module() {
  for (PythonModule* const module : modules_of(*here_)) {
    std::vector<Call> calls = calls_elsewhere_of(module->tokens, module->values);
    if (std::ranges::none_of(
            calls, [&](const Call& call) { return trains(call) && !call.arguments.empty() && !is_own_trainer(call); }))
      continue;
    std::erase_if(calls,
                  [&](const Call& call) { return loads_model(call) && !is_used(module->values.function_around(call.at)); });
    calls_ = std::move(calls);
    here_tokens_ = &module->tokens;
    here_ = &module->values;
    files_.note_use(module->name);
    look_at_modules();
    return true;
  }
  return false;
}

bool PythonScript::imports(std::string_view module) {
  for (size_t at = 0; at + 1 < here_tokens_->size(); ++at)
    if (((*here_tokens_)[at].is_word("import") || (*here_tokens_)[at].is_word("from")) &&
        (*here_tokens_)[at + 1].is_word(module))
      if (here_->runs(at) != false) return true;
  return false;
}

bool PythonScript::mentions(std::string_view name) const {
  return std::ranges::any_of(*here_tokens_, [&](const PythonToken& token) { return token.is_word(name); });
}

bool PythonScript::has_loop() const {
  // loss.backward(), Lightning's training_step, an engine of DeepSpeed's pipeline
  constexpr std::array<std::string_view, 3> kSteps = {"backward", "training_step", "train_batch"};
  const auto steps_in = [&](const std::vector<PythonToken>& tokens, const PythonValues& values, bool module) {
    for (size_t at = 0; at + 1 < tokens.size(); ++at)
      if (tokens[at].kind == PythonKind::name && std::ranges::find(kSteps, tokens[at].text) != kSteps.end() &&
          tokens[at + 1].is("(") && (!module || is_used(values.function_around(at))))
        return true;
    return false;
  };
  return steps_in(*here_tokens_, *here_, false) || std::ranges::any_of(modules_of(*here_), [&](PythonModule* module) {
           return steps_in(module->tokens, module->values, true);
         });
}

bool PythonScript::defines(std::string_view function) const {
  const auto defined_in = [&](const std::vector<PythonToken>& tokens) {
    for (size_t at = 1; at < tokens.size(); ++at)
      if (tokens[at - 1].is_word("def") && tokens[at].is_word(function)) return true;
    return false;
  };
  return defined_in(*here_tokens_) ||
         std::ranges::any_of(modules_of(*here_), [&](PythonModule* module) { return defined_in(module->tokens); });
}

bool PythonScript::is_own_trainer(const Call& call) const {
  const std::string name(call.name());
  if (!name.ends_with("Trainer")) return false;  // what holds one
  const auto own_in = [&](const std::vector<PythonToken>& tokens) {
    for (size_t at = 0; at + 2 < tokens.size(); ++at) {
      if (!tokens[at].is_word("class") || !tokens[at + 1].is_word(name)) continue;
      size_t base = at + 2;
      while (base < tokens.size() && !tokens[base].is(":") && tokens[base].text.find("Trainer") == std::string::npos) ++base;
      return base == tokens.size() || tokens[base].is(":");
    }
    return false;
  };
  return own_in(*here_tokens_) ||
         std::ranges::any_of(modules_of(*here_), [&](PythonModule* module) { return own_in(module->tokens); });
}

size_t PythonScript::reached(size_t at) const {
  const std::string function = here_->function_around(at);
  if (function.empty()) return at;
  const std::vector<PythonToken>& tokens = *here_tokens_;
  for (size_t call = tokens.size(); call-- > at + 1;)
    if (tokens[call].is_word(function) && call + 1 < tokens.size() && tokens[call + 1].is("(") &&
        !tokens[call - 1].is_word("def") && !tokens[call - 1].is("."))
      return call;
  return at;
}

bool PythonScript::freezes() const {
  const auto freezes_in = [](const std::vector<PythonToken>& tokens) {
    for (size_t at = 0; at + 2 < tokens.size(); ++at) {
      const bool put = tokens[at].is_word("requires_grad") && tokens[at + 1].is("=");
      const bool called = tokens[at].is_word("requires_grad_") && tokens[at + 1].is("(");
      if ((put || called) && tokens[at + 2].is_word("False")) return true;
    }
    return false;
  };
  return freezes_in(*here_tokens_) ||
         std::ranges::any_of(modules_of(*here_), [&](PythonModule* module) { return freezes_in(module->tokens); });
}

namespace {

// "run.json" of "{folder}/run.json".
std::string behind_blanks_to_fill(const std::string& text) {
  const size_t first = text.find_first_not_of('/', text.rfind('}') + 1);
  return first == std::string::npos ? std::string() : text.substr(first);
}

}  // namespace

// Where "open(" stands of what is written to: there itself, or behind the "with" that a name is of; kEnd where neither is.
size_t PythonScript::opened(size_t at) const {
  const std::vector<PythonToken>& tokens = *here_tokens_;
  if (tokens[at].kind != PythonKind::name || tokens[at + 1].is("(")) return at;
  for (size_t as = at; as-- > 1;) {
    if (!tokens[as].is_word("as") || tokens[as + 1].text != tokens[at].text) continue;
    while (as > 0 && !tokens[as].is_word("open") && tokens[as].kind != PythonKind::line_end) --as;
    return as;
  }
  return kEnd;
}

std::vector<std::pair<std::string, PythonValue>> PythonScript::files_written() {
  std::vector<std::pair<std::string, PythonValue>> files;
  const std::vector<PythonToken>& tokens = *here_tokens_;
  constexpr int kMost = 64;  // that are looked at
  int dumps = 0;
  for (size_t at = 1; at + 4 < tokens.size(); ++at) {
    if (!tokens[at].is_word("dump") || !tokens[at - 1].is(".") || !tokens[at + 1].is("(")) continue;
    if (++dumps > kMost) break;
    size_t next = at + 2;
    PythonValue settings = here_->value(next);
    if (settings.kind != Kind::dict || next + 2 >= tokens.size() || !tokens[next].is(",")) continue;
    size_t file = opened(next + 1);
    if (file >= tokens.size() - 2 || !tokens[file].is_word("open") || !tokens[file + 1].is("(")) continue;
    const PythonToken& written = tokens[file += 2];
    PythonValue name = here_->value(file);
    if (!name.known() && written.kind == PythonKind::string)  // f"{folder}/run.json"
      name = {.kind = Kind::text, .text = behind_blanks_to_fill(written.text)};
    if (name.kind == Kind::text && !name.text.empty()) files.emplace_back(name.text, std::move(settings));
  }
  return files;
}

bool PythonScript::calls_own_lora() const {
  for (size_t at = 0; at + 1 < here_tokens_->size(); ++at) {
    const PythonToken& token = (*here_tokens_)[at];
    if (token.kind == PythonKind::name && lower(token.text).find("lora") != std::string::npos &&
        (*here_tokens_)[at + 1].is("(") && defines(token.text))
      return true;
  }
  return false;
}

PythonValue PythonScript::assigned(std::string_view name) {
  for (size_t at = 2; at + 2 < here_tokens_->size(); ++at) {
    const std::vector<PythonToken>& tokens = *here_tokens_;
    if (!tokens[at].is_word(name) || !tokens[at - 1].is(".") || !tokens[at + 1].is("=")) continue;
    size_t value = at + 2;
    if (PythonValue given = here_->value(value); given.known() && here_->runs(at) == true) return given;
  }
  return {};
}

// "loss / steps", "loss /= steps"
PythonValue PythonScript::parts_of_loss() {
  const std::vector<PythonToken>& tokens = *here_tokens_;
  for (size_t at = 0; at + 2 < tokens.size(); ++at) {
    const bool loss = tokens[at].kind == PythonKind::name && lower(tokens[at].text).ends_with("loss");
    if (!loss || !(tokens[at + 1].is("/") || tokens[at + 1].is("/=")) || tokens[at + 2].kind != PythonKind::name) continue;
    size_t value = at + 2;
    if (PythonValue parts = here_->value(value); parts.kind == Kind::number) return parts;
  }
  return {};
}

PythonValue PythonScript::keyword(std::string_view name) {
  for (size_t at = 1; at + 2 < here_tokens_->size(); ++at) {
    const std::vector<PythonToken>& tokens = *here_tokens_;
    if (!tokens[at].is_word(name) || !tokens[at + 1].is("=") || !(tokens[at - 1].is("(") || tokens[at - 1].is(",")))
      continue;
    size_t value = at + 2;
    if (PythonValue given = here_->value(value); given.known()) return given;
  }
  return {};
}

std::optional<bool> PythonScript::calls_one_of(const std::string_view* names, size_t count, size_t before) {
  std::optional<bool> called = false;
  const std::vector<PythonToken>& tokens = *here_tokens_;
  for (size_t at = 0; at + 1 < std::min(before, tokens.size()); ++at) {
    const bool defined = at > 0 && tokens[at - 1].is_word("def");
    if (defined || !tokens[at + 1].is("(") || std::find(names, names + count, tokens[at].text) == names + count) continue;
    const std::optional<bool> runs = here_->runs(at);
    if (runs == true) return true;
    if (!runs) called = std::nullopt;
  }
  return called;
}

namespace {

// Of "self.max_source_length" at `at` the last name.
std::string last_name(const std::vector<PythonToken>& tokens, size_t at) {
  while (at + 2 < tokens.size() && tokens[at].kind == PythonKind::name && tokens[at + 1].is(".")) at += 2;
  return at < tokens.size() && tokens[at].kind == PythonKind::name ? lower(tokens[at].text) : std::string();
}

bool has_one_of(const std::string& name, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

}  // namespace

PythonScript::Rows PythonScript::longest_rows(size_t before) const {
  Rows rows;
  double longest = 0, asked = 0, answered = 0;  // a row is what is asked and what is answered where they are cut apart
  for (const Call& call : calls_) {
    if (!tokenizes(call) || call.at > before) continue;
    for (const char* name : {"max_length", "model_max_length", "seq_length"}) {
      const Argument* argument = call.find(name);
      if (!argument || argument->value.kind == Kind::none) continue;
      const bool is_number = argument->value.kind == Kind::number;
      const std::optional<double> number = is_number ? number_of(argument->value) : std::nullopt;
      rows.unknown = rows.unknown || !number;
      if (!number) continue;
      const double length = std::clamp(*number, 0.0, 1e12);
      const std::string limit = last_name(*here_tokens_, argument->at);
      if (has_one_of(limit, {"source", "input", "prompt"})) asked = std::max(asked, length);
      if (has_one_of(limit, {"target", "output", "answer", "response"})) answered = std::max(answered, length);
      if (length > longest) rows.limit = *argument;
      longest = std::max(longest, length);
    }
  }
  if (asked > 0 && answered > 0 && longest <= std::max(asked, answered)) {
    const PythonValue both{.kind = Kind::number, .text = std::to_string(static_cast<int64_t>(asked + answered))};
    rows.limit = Argument{.name = "max_length", .at = 0, .value = both, .span = {}};
  }
  return rows;
}

namespace {

// Words of a string that may be files of settings; also in the text that says how the script is used.
std::vector<std::string> settings_named(const PythonToken& token) {
  constexpr size_t kLongest = 1 << 13, kMost = 8;
  std::vector<std::string> names;
  if (token.kind != PythonKind::string || token.text.size() > kLongest) return names;
  const std::string_view text = token.text;
  for (const char* ending : {".yaml", ".yml", ".json"})
    for (size_t at = text.find(ending); at != std::string_view::npos && names.size() < kMost;
         at = text.find(ending, at + 1)) {
      const size_t before = text.find_last_of(" \t\n\"'`=(", at);
      const size_t begin = before == std::string_view::npos ? 0 : before + 1;
      names.emplace_back(text.substr(begin, at + std::string_view(ending).size() - begin));
    }
  return names;
}

// Whether something there reads files of settings.
bool reads_settings(const std::vector<PythonToken>& tokens) {
  static constexpr std::array<std::string_view, 7> kReaders = {"yaml",  "json",      "OmegaConf",       "toml",
                                                               "hydra", "TrlParser", "HfArgumentParser"};
  return std::ranges::any_of(tokens, [](const PythonToken& token) {
    return token.kind == PythonKind::name && std::ranges::find(kReaders, token.text) != kReaders.end();
  });
}

}  // namespace

std::vector<std::string> PythonScript::settings_files() {
  constexpr size_t kMost = 8;
  std::vector<std::string> names;
  const auto look_at = [&](const std::vector<PythonToken>& tokens) {
    for (const PythonToken& token : tokens)
      for (const std::string& name : settings_named(token))
        if (names.size() < kMost && files_.holds_settings(name)) names.push_back(name);
  };
  if (const std::string name = hydras_settings(tokens_); !name.empty()) names.push_back(name);
  look_at(tokens_);
  for (const PythonModule* const module : modules_of(values_)) look_at(module->tokens);
  const bool reads = reads_settings(tokens_) || std::ranges::any_of(modules_of(values_), [](const PythonModule* module) {
                       return reads_settings(module->tokens);
                     });
  if (names.empty() && reads && files_.only_settings().known()) names.push_back(files_.only_settings_name());
  return names;
}

}  // namespace snug::dialects
