#pragma once
// The calls of a Python script that load a model, quantize it, adapt it and train it, with what their arguments are worth.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recipe/dialects/python_files.h"

namespace snug::dialects {

inline constexpr std::array<std::string_view, 5> kAdapts = {"get_peft_model", "add_adapter", "inject_adapter_in_model",
                                                            "PeftModelForCausalLM", "PeftModel"};
// TRL's classes of settings.
inline constexpr std::array<std::string_view, 9> kConfigs = {"SFTConfig",    "DPOConfig", "ORPOConfig",
                                                             "KTOConfig",    "CPOConfig", "GRPOConfig",
                                                             "RewardConfig", "GKDConfig", "OnlineDPOConfig"};

struct Argument {
  std::string name;  // "" of a positional one
  size_t at = 0;     // token where its value begins
  PythonValue value;
  Span span;  // of the name, else of the value; empty: it stands in another file
};

struct Call {
  std::string path;    // "AutoModelForCausalLM.from_pretrained"
  size_t at = 0;       // its first token
  std::string target;  // the first name that its statement binds; "" if none
  std::vector<Argument> arguments;
  bool spreads = false;            // "**x", of which only Python knows what it holds
  std::string file;                // of a module's the file
  std::optional<bool> run = true;  // whether its statement is run; none: only Python knows

  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  std::string_view owner() const;
  const Argument* find(std::string_view key) const;
};

bool loads_model(const Call& call);
bool loads_adapter(const Call& call);  // PeftModel.from_pretrained(model, adapter): one that was trained before goes on
bool loads_tokenizer(const Call& call);
bool quantizes(const Call& call);
bool adapts(const Call& call);
bool has_settings(const Call& call);
bool wraps(const Call& call);  // a model with an adapter
bool trains(const Call& call);
bool loads_data(const Call& call);
bool makes_batches(const Call& call);  // DataLoader(…, batch_size=…)
bool starts_job(const Call& call);     // SageMaker's estimators: another machine runs a script
// transformers' Trainer, or a class of the script's own that is made of it: rows are as long as they come.
bool of_plain_trainer(const Call& trainer);

class PythonScript {
 public:
  static constexpr size_t kEnd = ~size_t{0};

  // `flags`: of the command that starts it; must outlive this.
  PythonScript(const std::string& source, const std::string& where, PythonFlags* flags = nullptr);
  PythonScript(const PythonScript&) = delete;
  PythonScript& operator=(const PythonScript&) = delete;

  // Goes on in the first of the modules beside it that trains; false where none does.
  bool enter_module();
  // Whether what is looked at stands in a module, not in the script itself.
  bool in_module() const { return here_ != &values_; }

  bool imports(std::string_view module);
  // Whether the name stands anywhere.
  bool mentions(std::string_view name) const;
  // Whether gradients are computed in a loop of its own, here or in a module whose function is used.
  bool has_loop() const;
  // Whether the script, or a module beside it, has a function of that name.
  bool defines(std::string_view function) const;
  // Whether what trains there is a class of the script's own that is not made of transformers' Trainer: a loop.
  bool is_own_trainer(const Call& call) const;
  // Where what stands at `at` is reached: in a function, at the last call of it below.
  size_t reached(size_t at) const;
  // What a name is bound to, wherever.
  PythonValue bound(const std::string& name) { return here_->bound(name); }
  // json.dump(settings, open("run.json", "w")): "run.json" and the dict.
  std::vector<std::pair<std::string, PythonValue>> files_written();
  // Whether weights are kept from being trained, here or in a module beside it.
  bool freezes() const;
  // Whether a function of the script's own that has LoRA in its name is called.
  bool calls_own_lora() const;
  // What is put there later, "args.NAME = …", where that is known.
  PythonValue assigned(std::string_view name);
  // By what a loop of its own divides its loss: over so many batches gradients are accumulated.
  PythonValue parts_of_loss();
  // What any call is given by that name, where that is known.
  PythonValue keyword(std::string_view name);
  // Whether one of these is called before `before`; none: only Python knows.
  template <size_t N>
  std::optional<bool> calls(const std::array<std::string_view, N>& names, size_t before) {
    return calls_one_of(names.data(), N, before);
  }
  // The longest rows that a tokenizer is asked for before `before`, and whether there is a limit that is not known.
  struct Rows {
    std::optional<Argument> limit;
    bool unknown = false;
  };
  Rows longest_rows(size_t before) const;

  template <class Is>
  const Call* first(const Is& is) const {
    const auto found = std::ranges::find_if(calls_, is);
    return found == calls_.end() ? nullptr : &*found;
  }

  // The call that an argument stands for: it is there itself, or its name was bound to one; else the last before `before`;
  // else the one of the modules beside it.
  template <class Is>
  const Call* given(const Argument* argument, const Is& is, size_t before) const {
    const Call* last = nullptr;
    const Call* bound = nullptr;
    const size_t place = argument && argument->at < here_tokens_->size() ? here_->chosen(argument->at) : kEnd;
    const PythonToken* const named = place < here_tokens_->size() ? &(*here_tokens_)[place] : nullptr;
    for (const Call& call : calls_) {
      if (!is(call)) continue;
      if (call.at == place) return &call;
      if (call.at > before) continue;
      last = &call;
      if (named && named->kind == PythonKind::name && call.target == named->text) bound = &call;
    }
    return bound ? bound : last ? last : elsewhere(is);
  }

  // The one such call, wherever it stands; null if there are more.
  template <class Is>
  const Call* only(const Is& is) const {
    const Call* const found = first(is);
    return std::ranges::count_if(calls_, is) == 1 ? found : nullptr;
  }

  // The one such call in the modules beside it; null if there are more.
  template <class Is>
  const Call* elsewhere(const Is& is) const {
    const Call* const found = first_elsewhere(is);
    return std::ranges::count_if(elsewhere_, is) == 1 ? found : nullptr;
  }

  template <class Is>
  const Call* first_elsewhere(const Is& is) const {
    const auto found = std::ranges::find_if(elsewhere_, is);
    return found == elsewhere_.end() ? nullptr : &*found;
  }

  // Whether one is called in the modules beside it; none: only Python knows.
  template <class Is>
  std::optional<bool> calls_elsewhere(const Is& is) const {
    const auto found = std::ranges::find_if(elsewhere_, is);
    return found == elsewhere_.end() ? std::optional(false) : found->run;
  }

  // Files of settings beside it that it names, or the one that lies there.
  std::vector<std::string> settings_files();
  // What the command that starts the script says of them.
  void choose_groups(Document& settings) { files_.choose_groups(settings); }

  // Notes where a call stands that says something.
  void note_use(const Call* call) {
    if (call && !call->file.empty()) files_.note_use(call->file);
  }
  // Files beside it that say something.
  const std::vector<std::string>& files_read() const { return files_.used(); }
  const std::vector<std::string>& notes() const { return files_.notes(); }

 private:
  size_t opened(size_t at) const;
  std::optional<bool> calls_one_of(const std::string_view* names, size_t count, size_t before);
  void look_at_modules();
  bool is_used(const std::string& function) const;

  PythonFiles files_;
  std::vector<PythonToken> tokens_;
  PythonValues values_;
  const std::vector<PythonToken>* here_tokens_;  // of the script or of the module that is looked at
  PythonValues* here_;
  std::vector<Call> calls_, elsewhere_;
};

}  // namespace snug::dialects
