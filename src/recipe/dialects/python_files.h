#pragma once
// What a Python script imports and loads, where it lies beside the script (beside.h): modules of its own, and
// JSON and YAML that hold its settings.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipe/dialects/python_flags.h"

namespace snug::dialects {

// One file that is imported.
struct PythonModule {
  PythonModule(std::string file, std::vector<PythonToken> source, PythonFiles* files)
      : name(std::move(file)), tokens(std::move(source)), values(tokens, files) {}
  PythonModule(const PythonModule&) = delete;
  PythonModule& operator=(const PythonModule&) = delete;

  std::string name;
  std::vector<PythonToken> tokens;
  PythonValues values;
};

// @hydra.main(config_path="../conf", config_name="sft"): ../conf/sft.yaml; "" without it.
std::string hydras_settings(const std::vector<PythonToken>& tokens);

class PythonFiles {
 public:
  explicit PythonFiles(const std::string& script, PythonFlags* flags = nullptr) : script_(script), flags_(flags) {}

  // "conf/run.yaml" as a dict; unknown where there is no such file, or none of that form.
  PythonValue loaded(const std::string& name);
  // Takes from the command the options that choose a file of a group for a script of Hydra's, "model=qwen", where that is
  // there: they are no values of that name. Returns this.
  PythonFiles* take_groups(const std::vector<PythonToken>& tokens);
  // Takes in what the settings go on from or are put together of; "model=qwen loss=dpo batch_size=6" of the command are
  // other files of groups, other values of keys.
  void choose_groups(Document& settings);
  // What Hydra puts together: the file, the groups that its defaults name, and what the command says of either.
  PythonValue composed(const std::string& name);
  std::optional<Document> put_together(const std::string& name);
  // The one file of settings beside it that names a model, where a script loads one that only its command line names; told
  // in `notes`. Unknown where there is none, or several.
  PythonValue only_settings();
  const std::string& only_settings_name() const { return settings_found_; }
  // Whether a file of that name lies beside it and names a model.
  bool holds_settings(const std::string& name);
  // "conf.run" of "from conf.run import …", or of "from conf import run"; null where there is none.
  PythonModule* imported(const std::string& module);

  // Modules import others that import others, and a file is looked into for each of its values: in all that has an end.
  bool may_ask(int64_t steps = 1) { return (asked_ += steps) <= kMostSteps; }

  // The script and its modules, as far as they are read: what one parses the others are given.
  std::vector<PythonValues*>& everybody() { return everybody_; }

  // What the command that starts the script gives it; null: no command does.
  PythonFlags* flags() const { return flags_; }

  // A variable of ".env" beside the script, or of the example of one that its author gives; unknown where none sets it.
  PythonValue environment(const std::string& name);

  // Whether a switch is taken as given, which is noted: where no command says which are.
  bool takes_as_given(const std::string& name);

  // One file asks another, which may ask the next: not without end.
  bool enter() { return crossings_ < kMostCrossings && ++crossings_ > 0; }
  void leave() { --crossings_; }

  // A call whose function is being read: its parameters are what this call gives.
  struct Call {
    std::string function;
    PythonValues* caller;
    size_t open;
  };
  std::vector<Call>& calls() { return calls_; }  // the innermost last
  size_t which_calls() const;                    // a number for them all
  // How often a parameter was what one call gives: what was found meanwhile is of that call alone.
  int64_t asked_of_calls() const { return asked_of_calls_; }
  void note_asked_of_call() { ++asked_of_calls_; }

  void note_use(const std::string& name);
  // Those that said something, as they are named.
  const std::vector<std::string>& used() const { return used_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  static constexpr int kMostFiles = 32, kMostCrossings = 8, kMostFilesOfAFolder = 200;
  static constexpr int64_t kMostSteps = 200'000;
  static constexpr int64_t kMostModuleBytes = int64_t{1} << 20, kMostSettingsBytes = int64_t{1} << 16;

  struct Settings {
    PythonValue values;
    int64_t steps = 1;  // that a look into them counts for
  };

  std::string text_of(const std::filesystem::path& name, int64_t most_bytes);
  PythonValue peeked(const std::string& name);

  std::string script_;
  PythonFlags* flags_;
  int read_ = 0, crossings_ = 0;
  int64_t asked_ = 0;
  std::vector<std::string> used_, notes_;
  bool looked_for_settings_ = false;
  std::string settings_found_;
  std::vector<PythonValues*> everybody_;
  std::vector<Call> calls_;
  int64_t asked_of_calls_ = 0;
  std::map<std::string, std::unique_ptr<PythonModule>> modules_;  // null: not there
  std::map<std::string, Settings> settings_;
  std::optional<std::map<std::string, PythonValue>> environment_;
  std::string environment_name_;
  std::map<std::string, std::string> groups_;  // "model": "qwen"
};

}  // namespace snug::dialects
