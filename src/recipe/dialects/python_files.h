#pragma once
// What a Python script imports and loads, where it lies beside the script or in the working directory: modules of its own,
// and JSON and YAML that hold its settings.

#include <filesystem>
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
  explicit PythonFiles(const std::string& script) : directory_(std::filesystem::path(script).parent_path()) {}

  // "conf/run.yaml" as a dict; unknown where there is no such file, or none of that form.
  PythonValue loaded(const std::string& name);
  // "conf.run" of "from conf.run import …", or of "from conf import run"; null where there is none.
  PythonModule* imported(const std::string& module);

  // Modules import others that import others: how often they are asked, in all, has an end.
  bool may_ask() { return ++asked_ <= kMostQuestions; }

  void note_use(const std::string& name);
  // Those that said something, as they are named.
  const std::vector<std::string>& used() const { return used_; }

 private:
  static constexpr size_t kMost = 32;
  static constexpr int64_t kMostQuestions = 200'000;

  std::string text_of(const std::filesystem::path& name);

  std::filesystem::path directory_;
  size_t read_ = 0;
  int64_t asked_ = 0;
  std::vector<std::string> used_;
  std::vector<std::pair<std::string, std::unique_ptr<PythonModule>>> modules_;  // null: not there
};

}  // namespace snug::dialects
