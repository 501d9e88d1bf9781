#include "recipe/dialects/shell_branches.h"

#include <algorithm>
#include <utility>

namespace snug::dialects {

namespace {

constexpr size_t kMostBranches = 100;

bool is_test(const Command& command, size_t first) {
  return first < command.size() &&
         (command[first].text == "[" || command[first].text == "[[" || command[first].text == "test");
}

std::optional<bool> compared(const std::string& a, const std::string& sign, const std::string& b) {
  if (sign == "=" || sign == "==") return b.find('*') == std::string::npos ? std::optional(a == b) : std::nullopt;
  if (sign == "!=") return b.find('*') == std::string::npos ? std::optional(a != b) : std::nullopt;
  const std::optional<int64_t> left = whole_number(a, {}), right = whole_number(b, {});
  if (!left || !right) return std::nullopt;
  if (sign == "-eq") return *left == *right;
  if (sign == "-ne") return *left != *right;
  if (sign == "-gt") return *left > *right;
  if (sign == "-ge") return *left >= *right;
  if (sign == "-lt") return *left < *right;
  if (sign == "-le") return *left <= *right;
  return std::nullopt;
}

// "[ A = B ]", "[ -n A ]" from `first` on; none: only a shell knows.
std::optional<bool> holds(const Command& command, size_t first) {
  std::vector<std::string> words;
  for (size_t i = first + 1; i < command.size() && command[i].text != "]" && command[i].text != "]]"; ++i) {
    if (command[i].unread) return std::nullopt;
    words.push_back(command[i].text);
  }
  const bool negated = !words.empty() && words[0] == "!";
  if (negated) words.erase(words.begin());
  std::optional<bool> result;
  if (words.size() == 2 && words[0] == "-z") result = words[1].empty();
  if (words.size() == 2 && words[0] == "-n") result = !words[1].empty();
  if (words.size() == 3) result = compared(words[0], words[1], words[2]);
  return result && negated ? !*result : result;
}

std::optional<bool> either(std::optional<bool> a, std::optional<bool> b) {
  if (a == true || b == true) return true;
  return a && b ? std::optional(false) : std::nullopt;
}

}  // namespace

bool ShellBranches::all_taken() const {
  return std::ranges::none_of(branches_, [](const Branch& branch) { return branch.now == false; });
}

// True where nothing of the command is left.
bool ShellBranches::take_keyword(Command& command, std::string_view behind) {
  const std::string word = command.front().text;
  const bool joined = behind.starts_with('&') || behind.starts_with('|');  // with another condition
  const auto condition = [&]() { return is_test(command, 1) && !joined ? holds(command, 1) : std::nullopt; };
  if (word == "if" && branches_.size() < kMostBranches) {
    branches_.push_back({.now = condition(), .earlier = false});
    command.erase(command.begin());
    return is_test(command, 0);
  }
  const bool open = !branches_.empty() && !branches_.back().of_case;
  if ((word == "elif" || word == "else") && open) {
    Branch& branch = branches_.back();
    branch.earlier = either(branch.earlier, branch.now);
    const std::optional<bool> own = word == "else" ? std::optional(true) : condition();
    branch.now = branch.earlier == true || own == false ? std::optional(false)
                 : branch.earlier == false              ? own
                                                        : std::nullopt;
    command.erase(command.begin());
    return word == "elif" || command.empty();
  }
  if (word == "fi" && open) {
    branches_.pop_back();
    return true;
  }
  if (word == "then") {
    command.erase(command.begin());
    return command.empty();
  }
  return false;
}

// "big)", "big|large)" of a case, and its head and end.
bool ShellBranches::take_pattern(Command& command, std::string_view behind) {
  const bool in_case = !branches_.empty() && branches_.back().of_case;
  if (command.front().text == "case" && command.size() >= 3 && command[2].text == "in" && branches_.size() < kMostBranches) {
    branches_.push_back({.of_case = true,
                         .now = false,
                         .earlier = false,
                         .subject = command[1].text,
                         .known = !command[1].unread,
                         .awaits = true});
    command.erase(command.begin(), command.begin() + 3);
    return command.empty() || take_pattern(command, behind);
  }
  if (!in_case) return false;
  Branch& branch = branches_.back();
  if (command.front().text == "esac") {
    branches_.pop_back();
    return true;
  }
  const bool pattern = branch.awaits && command.size() == 1 && (behind.starts_with(')') || behind.starts_with('|'));
  if (!pattern) return false;
  const std::string& text = command.front().text;
  if (text.starts_with('-')) {  // "--rows)": each word that the script is started with is looked at in its turn
    branch.of_options = true;
    const bool given = options_ && std::ranges::find(*options_, text, &Word::text) != options_->end();
    branch.now = either(branch.now, options_ ? std::optional(given) : std::nullopt);
  } else if (!branch.of_options) {
    const bool plain = text.find_first_of("*?[") == std::string::npos;
    const std::optional<bool> own = text == "*"             ? std::optional(true)
                                    : branch.known && plain ? std::optional(text == branch.subject)
                                                            : std::nullopt;
    branch.now = either(branch.now, branch.earlier == true || own == false ? std::optional(false)
                                    : branch.earlier == false              ? own
                                                                           : std::nullopt);
  }
  branch.awaits = behind.starts_with('|');
  return true;
}

bool ShellBranches::is_run(Command& command, std::string_view behind) {
  const bool next_case = behind.starts_with(";;");
  const auto leave = [&](bool run) {
    if (next_case && !branches_.empty() && branches_.back().of_case) {
      Branch& branch = branches_.back();
      if (!branch.of_options) branch.earlier = either(branch.earlier, branch.now);
      branch.now = false;
      branch.awaits = true;
    }
    return run;
  };
  if (command.empty()) return leave(false);
  const bool skipped = std::exchange(skips_next_, false);
  if (take_pattern(command, behind) || take_keyword(command, behind)) return leave(false);
  if (is_test(command, 0)) {  // "[ … ] && …", "[ … ] || …"
    const std::optional<bool> condition = holds(command, 0);
    skips_next_ = (behind.starts_with("&&") && condition == false) || (behind.starts_with("||") && condition == true);
  }
  return leave(!skipped && all_taken());
}

Command given_to_a_shell(const Command& command) {
  size_t line = command[0].text == "nohup" ? 1 : 0;
  if (line < command.size() && command[line].text == "eval") {
    ++line;
  } else {
    const auto is_shell = [](const Word& word) {
      return word.text == "bash" || word.text == "sh" || word.text == "/bin/bash";
    };
    const auto shell = std::ranges::find_if(command, is_shell);
    const auto option = shell == command.end() ? shell : shell + 1;
    if (option == command.end() || (option->text != "-c" && option->text != "-lc")) return {};
    line = static_cast<size_t>(option - command.begin()) + 1;
  }
  const bool all = line > 0 && command[line - 1].text == "eval";
  Command words;
  for (size_t i = line; i < (all ? command.size() : std::min(line + 1, command.size())); ++i) {
    for (std::string& part : split(command[i].text)) {
      if (part.find_first_of(";|&<>") != std::string::npos || words.size() > 1000) return words;
      const bool unread = command[i].unread && part.find('$') != std::string::npos;
      words.push_back({std::move(part), command[i].span, false, unread});
    }
  }
  return words;
}

}  // namespace snug::dialects
