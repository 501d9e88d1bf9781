#include "cli/arguments.h"

#include <algorithm>

#include "base/error.h"
#include "recipe/keys.h"
#include "recipe/yaml.h"

namespace snug::cli {

namespace {

class Parser {
 public:
  Parser(std::span<char* const> arguments, const std::vector<std::string>& own)
      : words_(arguments.begin(), arguments.end()), own_(own) {}

  Arguments parse() {
    read_recipe_file();
    for (next_ = 0; next_ < words_.size();) {
      const std::string word = words_[next_++];
      if (word.starts_with("--")) {
        flag(word.substr(2));
      } else if (!is_recipe_file(word)) {
        result_.positional.push_back(word);
      }
    }
    if (result_.positional.size() > 1) throw UsageError("one model at a time: '" + result_.positional[1] + "' is too much");
    if (!result_.positional.empty()) result_.recipe.model = result_.positional.front();
    return std::move(result_);
  }

 private:
  static bool is_recipe_file(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

  // The file first, whatever its place: flags change what it says.
  void read_recipe_file() {
    bool found = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].starts_with("--") || !is_recipe_file(words_[i])) continue;
      if (i > 0 && words_[i - 1].starts_with("--") && words_[i - 1].find('=') == std::string::npos) continue;  // a flag's value
      if (found) throw UsageError("one recipe at a time: '" + words_[i] + "' is too much");
      found = true;
      RecipeFile file = read_recipe_yaml(words_[i]);
      result_.recipe = std::move(file.recipe);
      result_.keys_set = std::move(file.keys_set);
      result_.passed_over = std::move(file.passed_over);
    }
  }

  bool owned(const std::string& name) const { return std::find(own_.begin(), own_.end(), name) != own_.end(); }

  void flag(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (owned(name)) {
      result_.flags[name] = "";
      return;
    }
    const bool takes_value = owned(name + "=");
    const Key* key = takes_value ? nullptr : find_key(name);
    std::string value;
    if (equals != std::string::npos) {
      value = text.substr(equals + 1);
    } else if (next_ < words_.size() && wants_next(key, takes_value, words_[next_])) {
      value = words_[next_++];
    } else if (takes_value || (key != nullptr && key->type != KeyType::boolean)) {
      throw UsageError("--" + name + " needs a value");
    }
    if (takes_value) {
      result_.flags[name] = value;
      return;
    }
    set_key(name, value);
  }

  // A boolean takes the next word only if that word is a boolean's value.
  static bool wants_next(const Key* key, bool takes_value, const std::string& word) {
    if (takes_value || (key != nullptr && key->type != KeyType::boolean)) return true;
    constexpr std::string_view kBooleans[] = {"true", "false", "yes", "no", "1", "0", "True", "False"};
    return std::find(std::begin(kBooleans), std::end(kBooleans), word) != std::end(kBooleans);
  }

  void set_key(const std::string& name, const std::string& value) {
    try {
      if (apply(result_.recipe, name, value, "--" + name) == Applied::passed_over) result_.passed_over.push_back(name);
    } catch (const Error& error) {
      if (!error.problem().starts_with("there is no key")) throw;
      throw UsageError(error.what());
    }
    if (const Key* key = find_key(name)) result_.keys_set.emplace_back(key->name);
  }

  std::vector<std::string> words_;
  const std::vector<std::string>& own_;
  size_t next_ = 0;
  Arguments result_;
};

}  // namespace

Arguments parse_arguments(std::span<char* const> arguments, const std::vector<std::string>& own) {
  return Parser(arguments, own).parse();
}

}  // namespace snug::cli
