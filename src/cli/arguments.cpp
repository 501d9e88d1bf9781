#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "model/catalogue.h"
#include "recipe/keys.h"
#include "recipe/yaml.h"

namespace snug::cli {

namespace {

class Parser {
 public:
  Parser(std::span<char* const> arguments, const std::vector<std::string>& own)
      : words_(arguments.begin(), arguments.end()), own_(own) {}

  Arguments parse() {
    while (next_ < words_.size()) {
      const std::string word = words_[next_++];
      if (word.starts_with("--")) {
        flag(word.substr(2));
      } else if (is_recipe(word)) {
        if (!recipe_file_.empty()) throw UsageError("one recipe at a time: '" + word + "' is too much");
        recipe_file_ = word;
      } else {
        result_.positional.push_back(word);
      }
    }
    if (result_.positional.size() > 1) throw UsageError("one model at a time: '" + result_.positional[1] + "' is too much");
    apply_all();
    return std::move(result_);
  }

 private:
  // The file first, whatever its place: flags change what it says.
  void apply_all() {
    if (!recipe_file_.empty() && !take_foreign()) {
      RecipeFile file = read_recipe_yaml(recipe_file_);
      result_.recipe = std::move(file.recipe);
      result_.keys_set = std::move(file.keys_set);
      result_.passed_over = std::move(file.passed_over);
    }
    result_.recipe_file = recipe_file_;
    for (const auto& [name, value] : settings_) set_key(name, value);
    if (!result_.positional.empty()) result_.recipe.model = result_.positional.front();
    if (!result_.foreign) return;
    fmt::print(stderr, "snug: {}: {}\n", recipe_file_, describe(*result_.foreign));
    for (const std::string& note : result_.foreign->notes) fmt::print(stderr, "snug: {}\n", note);
    if (const std::string& other = result_.foreign->keys_in; !other.empty() && result_.recipe.model.empty())
      throw Error(fmt::format("the script's keys are in {}", other), recipe_file_, "give that file");
    if (result_.recipe.model.empty()) throw UsageError(recipe_file_ + " does not say which model: give it beside the file");
    const std::string& model = result_.recipe.model;
    if (!std::filesystem::exists(model) && !find_model(model))
      throw Error(fmt::format("its model '{}' is neither here nor in `snug models`", model), recipe_file_,
                  "give the model's own config.json, or a model like it, beside the recipe");
  }

  static bool ends_in(const std::string& word, std::initializer_list<std::string_view> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](std::string_view end) { return word.ends_with(end); });
  }

  // A .json may be a model's config.json, or the arguments that a trainer has left.
  static bool is_recipe(const std::string& word) {
    if (ends_in(word, {".yaml", ".yml", ".sh", ".bash"})) return true;
    if (!ends_in(word, {".json"}) || std::filesystem::path(word).filename() == "config.json") return false;
    try {
      const dialects::Document document = dialects::read_document(read_recipe_text(word), word);
      return recognise(document) || (!what_else(document).empty() && !document.has("hidden_size"));
    } catch (const Error&) {
      return false;
    }
  }

  // True if the file is another trainer's recipe. What is no recipe of theirs is left to our own reader and its messages.
  bool take_foreign() {
    const bool script = ends_in(recipe_file_, {".sh", ".bash"});
    const std::string text = read_recipe_text(recipe_file_);
    dialects::Document document;
    std::optional<Dialect> dialect;
    try {
      document = dialects::read_document(text, recipe_file_);
      dialect = recognise(document);
    } catch (const Error&) {
      if (script) throw;
    }
    if (!dialect) {
      if (const std::string what = what_else(document); !what.empty())
        throw Error("this is no recipe of a language model: it is " + what, recipe_file_,
                    "give the file that holds the trainer's own keys");
      if (script) throw Error("what this script starts is no trainer that snug knows", recipe_file_);
      return false;
    }
    result_.foreign = read_foreign(document, *dialect);
    result_.recipe = result_.foreign->recipe;
    result_.keys_set = result_.foreign->keys_set;
    for (const std::string& name : result_.foreign->models) {
      if (!std::filesystem::exists(name) && !find_model(name)) continue;
      result_.recipe.model = name;
      break;
    }
    // Rows are counted and trained on only where file and tokenizer are at hand; --data says otherwise.
    if (!std::filesystem::exists(result_.recipe.data) || !std::filesystem::exists(result_.recipe.model))
      result_.recipe.data.clear();
    return true;
  }

  bool owned(const std::string& name) const { return std::find(own_.begin(), own_.end(), name) != own_.end(); }

  void flag(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (owned(name)) {
      result_.flags[name] = "";
      return;
    }
    const bool repeats = owned(name + "=+");
    const bool takes_value = repeats || owned(name + "=");
    const Key* key = takes_value ? nullptr : find_key(name);
    std::string value;
    if (equals != std::string::npos) {
      value = text.substr(equals + 1);
    } else if (next_ < words_.size() && wants_next(key, words_[next_])) {
      value = words_[next_++];
    } else if (takes_value || (key != nullptr && !stands_alone(*key))) {
      throw UsageError("--" + name + " needs a value");
    } else {
      value = "true";  // other trainers' keys too: --load-in-4bit asks for something
    }
    if (repeats) {
      result_.lists[name].push_back(value);
      return;
    }
    if (takes_value) {
      result_.flags[name] = value;
      return;
    }
    if (key == nullptr) refuse_unknown(name, value);
    settings_.emplace_back(name, value);
  }

  // A boolean, or the one directory that may be left to choose.
  static bool stands_alone(const Key& key) { return key.type == KeyType::boolean || key.name == "resume_from_checkpoint"; }

  // A flag is nobody's value. A boolean takes the next word only if that word is a boolean's value.
  static bool wants_next(const Key* key, const std::string& word) {
    if (word.starts_with("--")) return false;
    if (key == nullptr || key->type != KeyType::boolean) return true;
    constexpr std::string_view kBooleans[] = {"true", "false", "yes", "no", "1", "0", "True", "False"};
    return std::find(std::begin(kBooleans), std::end(kBooleans), word) != std::end(kBooleans);
  }

  // A name that is neither ours nor another trainer's is a slip of the pen, and told before anything else.
  static void refuse_unknown(const std::string& name, const std::string& value) {
    try {
      Recipe unused;
      apply(unused, name, value, "--" + name);
    } catch (const Error& error) {
      if (!error.problem().starts_with("there is no key")) throw;
      throw UsageError(error.what());
    }
  }

  void set_key(const std::string& name, const std::string& value) {
    if (apply(result_.recipe, name, value, "--" + name) == Applied::passed_over) result_.passed_over.push_back(name);
    const Key* key = find_key(name);
    if (!key) return;
    result_.keys_set.emplace_back(key->name);
    result_.keys_of_flags.emplace_back(key->name);
  }

  std::vector<std::string> words_;
  const std::vector<std::string>& own_;
  size_t next_ = 0;
  std::string recipe_file_;
  std::vector<std::pair<std::string, std::string>> settings_;  // recipe keys in the order of the flags
  Arguments result_;
};

}  // namespace

Arguments parse_arguments(std::span<char* const> arguments, const std::vector<std::string>& own) {
  return Parser(arguments, own).parse();
}

}  // namespace snug::cli
