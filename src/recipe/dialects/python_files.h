#pragma once
// What a Python script imports and loads, where it lies beside the script (beside.h): modules of its own, and
// JSON and YAML that hold its settings.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "recipe/dialects/python_values.h"

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

class PythonFiles {
 public:
  explicit PythonFiles(const std::string& script) : script_(script) {}

  // "conf/run.yaml" as a dict; unknown where there is no such file, or none of that form.
  PythonValue loaded(const std::string& name);
  // "conf.run" of "from conf.run import …", or of "from conf import run"; null where there is none.
  PythonModule* imported(const std::string& module);

  // Modules import others that import others, and a file is looked into for each of its values: in all that has an end.
  bool may_ask(int64_t steps = 1) { return (asked_ += steps) <= kMostSteps; }

  void note_use(const std::string& name);
  // Those that said something, as they are named.
  const std::vector<std::string>& used() const { return used_; }

 private:
  static constexpr int kMostFiles = 32;
  static constexpr int64_t kMostSteps = 200'000;
  static constexpr int64_t kMostModuleBytes = int64_t{1} << 20, kMostSettingsBytes = int64_t{1} << 16;

  struct Settings {
    PythonValue values;
    int64_t steps = 1;  // that a look into them counts for
  };

  std::string text_of(const std::filesystem::path& name, int64_t most_bytes);

  std::string script_;
  int read_ = 0;
  int64_t asked_ = 0;
  std::vector<std::string> used_;
  std::map<std::string, std::unique_ptr<PythonModule>> modules_;  // null: not there
  std::map<std::string, Settings> settings_;
};

}  // namespace snug::dialects
