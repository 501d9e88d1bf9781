// Commands of a shell script: which words belong together, what is run, what it does to what the script knows.

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "recipe/dialects/beside.h"
#include "recipe/dialects/shell_arithmetic.h"
#include "recipe/dialects/shell_reader.h"

namespace snug::dialects {

namespace {

// "NAME[key]=VALUE"
bool sets_item(const std::string& word) {
  const size_t open = word.find('['), close = word.find("]=");
  return open != std::string::npos && close != std::string::npos && open < close &&
         is_assignment(word.substr(0, open) + "=");
}

// What a queue, a launcher or the machine sets.
bool is_of_environment(std::string_view name) {
  constexpr std::array<std::string_view, 22> kBegins = {
      "SLURM", "PBS",   "LSB",  "SGE",  "CUDA", "NVIDIA", "HF_",  "WANDB", "NCCL", "MASTER", "RANK",
      "WORLD", "LOCAL", "NODE", "HOST", "HOME", "USER",   "PATH", "PWD",   "TMP",  "CONDA",  "VIRTUAL"};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return name.starts_with(begin); });
}

// "$NAME" alone, in small or capital letters; "" for others.
std::string name_alone(std::string_view word) {
  if (!word.starts_with('$')) return {};
  word.remove_prefix(1);
  if (word.starts_with('{') && word.ends_with('}')) word = word.substr(1, word.size() - 2);
  const bool plain = !word.empty() && std::ranges::all_of(word, is_name_char) && (word[0] < '0' || word[0] > '9');
  return plain ? std::string(word) : std::string();
}

}  // namespace

ShellReader::ShellReader(std::string_view text, const std::string& where, int& sourced, const Started& started)
    : text_(text),
      whole_(text),
      where_(where),
      sourced_(sourced),
      variables_(started.variables),
      branches_(started.by_another ? &arrays_["@"] : nullptr),
      reads_all_(started.reads_all) {
  if (!started.arguments.empty()) give(started.arguments);
}

Script ShellReader::read() {
  while (at_ < text_.size()) step();
  end_command();
  const bool uncalled = std::ranges::any_of(functions_, [](const auto& one) { return !one.second.called; });
  return {std::move(commands_), std::move(written_), std::move(blank_ends_), std::move(variables_), uncalled};
}

void ShellReader::step() {
  const char c = peek();
  if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
    at_ += peek(1) == '\n' ? 2 : 3;
  } else if (c == '\\' && ends_in_blanks()) {
    if (blank_ends_.size() < 100)
      blank_ends_.push_back(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1);
    at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
  } else if (c == '\n') {
    ++at_;
    const std::string file = written_file(), variable = read_into();
    end_command();
    read_here_documents(file, variable);
  } else if (c == ' ' || c == '\t' || c == '\r') {
    ++at_;
  } else if (c == '#') {
    at_ = std::min(text_.find('\n', at_), text_.size());
  } else if (c == '<' && peek(1) == '<' && peek(2) != '<') {
    here_document();
  } else if ((c == '`' && passes_remark()) || (command_.empty() && take_function())) {
    // of the one nothing is left, the other is read where it is called
  } else if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')') {
    ++at_;
    end_command();
  } else if (c == '<' || c == '>') {
    redirection();
  } else {
    word();
  }
}

// A backslash before blanks, and perhaps a remark, at the end of a line within a command.
bool ShellReader::ends_in_blanks() const {
  size_t next = at_ + 1;
  while (next < text_.size() && (text_[next] == ' ' || text_[next] == '\t' || text_[next] == '\r')) ++next;
  return next > at_ + 1 && !command_.empty() && next < text_.size() && (text_[next] == '\n' || text_[next] == '#');
}

// "`# what it is for`" among the words of a command, on one line or on lines of its own.
bool ShellReader::passes_remark() {
  const size_t end = text_.find('`', at_ + 1);
  if (end == std::string_view::npos) return false;
  bool remark = false;
  for (size_t line = at_ + 1; line < end;) {
    const size_t first = text_.find_first_not_of(" \t\r\n", line);
    if (first >= end) break;
    if (text_[first] != '#') return false;
    remark = true;
    line = std::min(text_.find('\n', first), end);
  }
  if (!remark) return false;
  at_ = end + 1;
  return true;
}

// "> FILE" is no word of the command; "<( … )" is a command of its own.
void ShellReader::redirection() {
  const bool writes = peek() == '>' && (command_.empty() || command_[0].text == "cat");
  while (peek() == '<' || peek() == '>' || peek() == '&') ++at_;
  if (peek() == '(') return;
  while (peek() == ' ') ++at_;
  bool unread = false;
  Span ignored;
  if (peek() == '\n' || at_ >= text_.size()) return;
  const std::string file = raw_word(unread, ignored);
  if (writes && !unread) redirected_to_ = file;
}

void ShellReader::end_command() {
  redirected_to_.clear();
  take_option();
  const size_t end = std::min(at_, text_.size());  // of a script that ends within a word at_ may be beyond
  const std::string_view behind = end > 0 ? text_.substr(end - 1) : std::string_view();
  empty_unset();
  if (!branches_.is_run(command_, behind)) return command_.clear();
  bool all = true;
  for (size_t i = 0; i < command_.size() && all; ++i) {
    const std::string& text = command_[i].text;
    if (i == 0 && (text == "export" || text == "local" || text == "declare" || text == "readonly")) continue;
    all = is_assignment(text) || appends(text) || sets_item(text);
    if (all && variables_.size() < kMostVariables) assign(text, command_[i].unread);
  }
  if (call_function()) return;
  take_loop();
  take_arguments();
  take_source();
  commands_.push_back(std::move(command_));
  command_.clear();
  if (Command words = given_to_a_shell(commands_.back()); !words.empty()) commands_.back() = std::move(words);
}

// "[ -n "$NAME" ]" of what nothing sets, neither the script nor, by its name, what starts it: no words.
void ShellReader::empty_unset() {
  constexpr std::array<std::string_view, 4> kElsewhere = {"source ", "eval ", "read ", "\n. "};
  constexpr int kMostLooks = 200;  // each through the whole script
  for (size_t i = 0; i + 1 < command_.size(); ++i) {
    Word& word = command_[i + 1];
    if ((command_[i].text != "-n" && command_[i].text != "-z") || !word.unread || ++looks_ > kMostLooks) continue;
    const std::string name = name_alone(word.text);
    const auto says = [&](std::string_view part) { return whole_.find(part) != std::string_view::npos; };
    if (name.empty() || is_of_environment(name) || says(name + "=") || says("for " + name) ||
        std::ranges::any_of(kElsewhere, says))
      continue;
    word.text.clear();
    word.unread = false;
  }
}

// "NAME+=VALUE"
bool ShellReader::appends(const std::string& word) {
  const size_t plus = word.find("+=");
  return plus != std::string::npos && is_assignment(word.substr(0, plus) + "=");
}

// `unread`: only a shell knows the value; one that it had before holds, as where nobody gives the script anything. Of a line
// of words the others are known: CMD="torchrun train.py --output_dir out-$(date)".
void ShellReader::assign(const std::string& word, bool unread) {
  const bool adds = appends(word);
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals - (adds ? 1 : 0));
  const std::string_view text = std::string_view(word).substr(equals + 1);
  const bool line = unread && text.find_first_of(" \t\n") != std::string_view::npos && (adds || text[0] != '$');
  if (line) with_unread_.insert(name);
  if (!unread && !adds) with_unread_.erase(name);
  if (unread && !line) {
    if (!variables_.contains(name) || variables_[name].empty()) variables_.erase(name);
    return;
  }
  std::string& value = variables_[name];
  if (!adds) value.clear();
  append(value, std::string(text));
}

// "case $1 in --rows) ROWS=$2": there "$2" is what the option is given; behind "arg=$1; shift; case $arg in" it is "$1".
void ShellReader::take_option() {
  if (command_.empty()) return;
  const std::string& first = command_[0].text;
  if (first == "while") shifts_first_ = false;
  if (first == "shift" && option_.empty()) shifts_first_ = true;
  if (first == "esac") option_.clear();
  if (command_.size() == 1 && first.starts_with('-') && at_ > 0 && at_ <= text_.size() && text_[at_ - 1] == ')')
    option_ = first;
}

std::optional<std::string> ShellReader::of_option() const {
  const auto all = arrays_.find("@");
  if (option_.empty() || all == arrays_.end()) return std::nullopt;
  const auto found = std::ranges::find(all->second, option_, &Word::text);
  if (found == all->second.end() || found + 1 == all->second.end() || (found + 1)->unread) return std::nullopt;
  return (found + 1)->text;
}

// "for NAME in A B": as if it were taken once.
void ShellReader::take_loop() {
  if (command_.size() < 4 || command_[0].text != "for" || command_[2].text != "in" || command_[3].unread) return;
  if (variables_.size() < kMostVariables) variables_[command_[1].text] = command_[3].text;
}

// "source FILE": what it sets, where it lies beside the script. Its folder is mostly reckoned out by the shell.
void ShellReader::take_source() {
  constexpr int kMostFiles = 16;  // in all: files may source one another
  if (command_.size() != 2 || (command_[0].text != "source" && command_[0].text != ".") || sourced_ >= kMostFiles) return;
  const auto text = read_beside(where_, command_[1].text, static_cast<int64_t>(kLargestDocumentBytes));
  if (!text) return;
  ++sourced_;
  try {
    ShellReader sourced(*text, where_, sourced_);
    sourced.variables_ = variables_;
    sourced.arrays_ = arrays_;
    variables_ = sourced.read().variables;
    for (auto& [name, function] : sourced.functions_) {
      if (function.text.empty()) function.text = *text;
      function.called = true;  // others of its may be for others
      functions_[name] = std::move(function);
    }
  } catch (const Error&) {
    return;  // as if it were not there
  }
}

// "$1", "$@"
void ShellReader::give(Command arguments) {
  for (size_t i = 0; i < arguments.size() && i < 100; ++i) {
    variables_.erase(std::to_string(i + 1));
    if (!arguments[i].unread) variables_[std::to_string(i + 1)] = arguments[i].text;
  }
  arrays_["@"] = std::move(arguments);
}

// "set -- A B"
void ShellReader::take_arguments() {
  if (command_.size() < 2 || command_[0].text != "set" || command_[1].text != "--") return;
  give(Command(command_.begin() + 2, command_.end()));
}

// ---- Functions

// Passes "name() { … }", "function name { … }" at at_; false where none begins there, or it never ends.
bool ShellReader::take_function() {
  if (reads_all_) return false;
  size_t at = at_;
  const auto blanks = [&](std::string_view which) {
    const size_t begin = at;
    while (at < text_.size() && which.find(text_[at]) != std::string_view::npos) ++at;
    return at > begin;
  };
  const bool said = text_.substr(at).starts_with("function ");
  if (said) at += 9;
  blanks(" \t");
  const size_t name = at;
  while (at < text_.size() && (is_name_char(text_[at]) || text_[at] == '-')) ++at;
  const std::string_view called = text_.substr(name, at - name);
  if (called.empty()) return false;
  blanks(" \t");
  const bool brackets = text_.substr(at).starts_with("()") || text_.substr(at).starts_with("( )");
  if (!brackets && !said) return false;
  if (brackets) at = text_.find(')', at) + 1;
  blanks(" \t\r\n");
  if (at >= text_.size() || text_[at] != '{') return false;
  const size_t end = end_of_function(at + 1);
  if (end == std::string_view::npos || functions_.size() >= 200) return false;
  functions_[std::string(called)] = {.text = {}, .begin = at + 1, .end = end};
  at_ = end + 1;
  return true;
}

// Where the brace stands that ends what begins there: a word of its own, as those that open others are.
size_t ShellReader::end_of_function(size_t begin) const {
  int depth = 1;
  char quote = '\0';
  for (size_t at = begin; at < text_.size(); ++at) {
    const char c = text_[at], before = text_[at - 1];
    const bool blank = before == ' ' || before == '\t' || before == '\n' || before == ';';
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && blank) {
      at = std::min(text_.find('\n', at), text_.size() - 1);
    } else if (blank && c == '{' && at + 1 < text_.size() &&
               std::string_view(" \t\r\n").find(text_[at + 1]) != std::string_view::npos) {
      ++depth;
    } else if (blank && c == '}' && --depth == 0) {
      return at;
    }
  }
  return std::string_view::npos;
}

// The function's commands, where the command that ends here calls one.
bool ShellReader::call_function() {
  if (command_.empty() || calls_ >= kDeepestCall) return false;
  const auto found = functions_.find(command_[0].text);
  if (found == functions_.end()) return false;
  found->second.called = true;
  const Function called = found->second;
  const size_t before = commands_.size(), back = at_;
  const std::string_view outer = text_;
  Command arguments(command_.begin() + 1, command_.end());
  const auto variables = [this] {
    std::map<std::string, std::string> places;
    for (const auto& [name, value] : variables_)
      if (!name.empty() && name[0] >= '0' && name[0] <= '9') places.emplace(name, value);
    return places;
  };
  const std::map<std::string, std::string> places = variables();
  const bool had = arrays_.contains("@");
  const Command given = had ? arrays_["@"] : Command();
  for (const auto& place : places) variables_.erase(place.first);
  command_.clear();
  give(std::move(arguments));
  ++calls_;
  text_ = (called.text.empty() ? whole_ : std::string_view(called.text)).substr(0, called.end);
  at_ = called.begin;
  while (at_ < text_.size()) step();
  end_command();
  --calls_;
  text_ = outer;
  at_ = back;
  for (const auto& place : variables()) variables_.erase(place.first);
  for (const auto& place : places) variables_.insert(place);
  arrays_["@"] = given;
  if (!had) arrays_.erase("@");
  if (!called.text.empty())
    for (size_t i = before; i < commands_.size(); ++i)
      for (Word& word : commands_[i]) word.span = {}, word.in_place = false;
  return true;
}

Script shell_commands(std::string_view text, const std::string& where, const Started& started) {
  int sourced = 0;
  return ShellReader(text, where, sourced, started).read();
}

}  // namespace snug::dialects
