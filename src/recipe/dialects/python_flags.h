#pragma once
// What the command that starts a Python script gives it: its options, "--lora_rank 8", and the environment's variables.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recipe/dialects/python_values.h"

namespace snug::dialects {

class PythonFlags {
 public:
  // Names have underscores for dashes. An unknown value is one that only a shell knows.
  void give_option(const std::string& name, PythonValue value) {
    value.flag = name;
    options_[name] = std::move(value);
  }
  void give_word(PythonValue word) { words_.push_back(std::move(word)); }
  void give_variable(const std::string& name, PythonValue value) { variables_[name] = std::move(value); }

  // Null where it is not given. An option is noted as taken.
  const PythonValue* option(const std::string& name) {
    const auto found = options_.find(name);
    if (found == options_.end()) return nullptr;
    taken_.insert(name);
    return &found->second;
  }
  const std::map<std::string, PythonValue>& options() const { return options_; }
  // For another use than its value.
  void take_away(const std::string& name) {
    away_.insert(name);
    options_.erase(name);
  }
  bool is_away(const std::string& name) const { return away_.contains(name); }
  const PythonValue* variable(const std::string& name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }
  // Whether a word without dashes is given, "train" of "main.py train --rows 4".
  bool has_word(const std::string& word) const {
    return std::ranges::find(words_, word, &PythonValue::text) != words_.end();
  }
  const std::vector<PythonValue>& words() const { return words_; }
  bool is_taken(const std::string& name) const { return taken_.contains(name); }

 private:
  std::map<std::string, PythonValue> options_, variables_;
  std::set<std::string> taken_, away_;
  std::vector<PythonValue> words_;
};

}  // namespace snug::dialects
