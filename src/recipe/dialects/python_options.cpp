// Options of a script's parser: their defaults, and what the command that starts the script gives them.

#include <algorithm>
#include <array>

#include "recipe/dialects/python_files.h"
#include "recipe/dialects/reading.h"

namespace snug::dialects {

// parser.set_defaults(name=…), commands.add_parser("train"), parser.add_subparsers(dest="…")
void PythonValues::gather_defaults(size_t open) {
  const PythonToken& name = token(open - 1);
  const bool sets = name.is_word("set_defaults"), adds = name.is_word("add_parser"), heads = name.is_word("add_subparsers");
  if (!sets && !adds && !heads) return;
  if (adds && token(open + 1).kind == PythonKind::string) commands_.push_back(token(open + 1).text);
  if (sets && is_of_another_command(open)) return;
  size_t end = open;
  pass_brackets(end);
  for (size_t at = open + 1; at + 1 < end; at = pass_expression(at) + 1) {
    if (token(at).kind != PythonKind::name || !token(at + 1).is("=")) continue;
    if (sets) options_[token(at).text] = at + 2;
    if (heads && token(at).is_word("dest")) command_option_ = token(at + 2).text;
  }
}

// "evaluate.add_argument(…)" where the script trains by another of its commands.
bool PythonValues::is_of_another_command(size_t open) {
  if (commands_.empty() || open < 3 || !token(open - 2).is(".")) return false;
  const auto parser = bindings_.find(token(open - 3).text);
  if (parser == bindings_.end()) return false;
  const Binding* made = nullptr;
  for (const Binding& binding : parser->second)
    if (binding.at < open) made = &binding;
  if (made == nullptr || !token(made->value + 2).is_word("add_parser")) return false;
  const std::string& command = token(made->value + 4).text;
  const PythonFlags* const flags = files_ ? files_->flags() : nullptr;
  const bool told = flags && std::ranges::any_of(commands_, [&](const auto& one) { return flags->has_word(one); });
  return told ? !flags->has_word(command) : !sounds_like_training(command);
}

// parser.add_argument("--name", "--other-name", default=…, dest="…"), add_arg("name", …), click.option("--name", …)
void PythonValues::gather_option(size_t open) {
  size_t end = open, usual = 0;
  pass_brackets(end);
  std::vector<std::string> names;
  std::string called, short_name;  // what holds it
  std::optional<bool> switched;
  bool is_bool = false;
  for (size_t at = open + 1; at + 1 < end;) {
    const size_t next = pass_expression(at);
    const bool is_short = tokens_[at].text.starts_with('-') && !tokens_[at].text.starts_with("--");
    if (tokens_[at].kind == PythonKind::string && is_short) short_name = tokens_[at].text.substr(1);
    if (tokens_[at].kind == PythonKind::string && !is_short) {
      names.push_back(tokens_[at].text.substr(std::min(tokens_[at].text.find_first_not_of('-'), tokens_[at].text.size())));
      std::ranges::replace(names.back(), '-', '_');
    }
    if (tokens_[at].is_word("default") && token(at + 1).is("=")) usual = at + 2;
    if (tokens_[at].is_word("type") && token(at + 1).is("=") && token(at + 2).is_word("bool")) is_bool = true;
    if (tokens_[at].is_word("dest") && token(at + 1).is("=")) called = token(at + 2).text;
    if (tokens_[at].is_word("action") && token(at + 2).text == "store_true") switched = false;
    if (tokens_[at].is_word("action") && token(at + 2).text == "store_false") switched = true;
    at = next + 1;
  }
  if (called.empty()) called = names.empty() ? short_name : names.front();
  if (!called.empty() && !short_name.empty()) names.push_back(short_name);
  const bool is_known = options_.contains(called) || switches_.contains(called) || spellings_.contains(called);
  if (called.empty() || (is_known && is_of_another_command(open))) return;
  const bool by_place = token(open - 1).is_word("add_argument") && token(open + 1).kind == PythonKind::string &&
                        !token(open + 1).text.starts_with('-');
  if (by_place) places_.emplace(called, places_.size());
  if (is_bool) bools_.insert(called);
  if (is_known && !commands_.empty()) options_.erase(called);  // of another command
  if (usual != 0) options_[called] = usual;
  if (switched) switches_[called] = *switched;
  auto& all = spellings_[called];
  all.insert(all.end(), names.begin(), names.end());
}

// Of the words that the command gives without dashes, those that are commands apart, the one at `place`; none where it has
// fewer.
std::optional<PythonValue> PythonValues::word(size_t place) {
  if (files_ == nullptr || files_->flags() == nullptr) return std::nullopt;
  for (const PythonValue& word : files_->flags()->words()) {
    if (std::ranges::find(commands_, word.text) != commands_.end()) continue;
    if (place-- == 0) return word;
  }
  return std::nullopt;
}

// What the command that starts the script gives an option; none where it gives nothing.
std::optional<PythonValue> PythonValues::flag(const std::string& name) {
  if (files_ == nullptr || files_->flags() == nullptr) return std::nullopt;
  if (name == command_option_)
    for (const std::string& command : commands_)
      if (files_->flags()->has_word(command)) return PythonValue{.kind = PythonValue::Kind::text, .text = command};
  if (const auto place = places_.find(name); place != places_.end()) return word(place->second);
  const auto spellings = spellings_.find(name);
  for (const std::string& one : spellings == spellings_.end() ? std::vector{name} : spellings->second) {
    const PythonValue* const given = files_->flags()->option(one);
    if (given == nullptr) continue;
    const auto switched = switches_.find(name);
    const PythonValue off{.kind = PythonValue::Kind::truth, .text = "false", .flag = given->flag};
    if (switched != switches_.end() && switched->second) return off;  // store_false
    // Python's bool("False") is true, as is that of any text.
    if (bools_.contains(name) && given->known())
      return PythonValue{.kind = PythonValue::Kind::truth, .text = "true", .flag = given->flag};
    return *given;
  }
  const PythonValue* const without = files_->flags()->option("no_" + name);  // HfArgumentParser's, BooleanOptionalAction's
  if (without == nullptr || truth_of(*without) != true) return std::nullopt;
  return PythonValue{.kind = PythonValue::Kind::truth, .text = "false", .flag = without->flag};
}

namespace {

// A switch without which the script trains nothing: whoever asks for its memory means to.
bool says_to_train(const std::string& name) {
  constexpr std::array<std::string_view, 8> kNames = {"train",    "do_train",  "run_train",   "training",
                                                      "finetune", "fine_tune", "do_finetune", "do_training"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

// Of an option of argparse.
std::optional<PythonValue> PythonValues::option_default(const std::string& name) {
  if (const auto option = options_.find(name); option != options_.end()) {
    size_t at = option->second;
    return at_depth(&PythonValues::choice, at);
  }
  const auto switched = switches_.find(name);
  if (switched == switches_.end()) return std::nullopt;
  const bool taken = switched->second || (says_to_train(name) && files_ != nullptr && files_->takes_as_given(name));
  return PythonValue{.kind = PythonValue::Kind::truth, .text = taken ? "true" : "false"};
}

// What the command that starts the script sets in its environment, or the file that dotenv reads; unknown where neither
// does.
PythonValue PythonValues::variable(const std::string& name) {
  if (!files_) return {};
  const PythonValue* const set = files_->flags() ? files_->flags()->variable(name) : nullptr;
  if (set) return *set;
  const bool reads_file = std::ranges::any_of(tokens_, [](const PythonToken& t) { return t.is_word("load_dotenv"); });
  return reads_file ? files_->environment(name) : PythonValue();
}

}  // namespace snug::dialects
