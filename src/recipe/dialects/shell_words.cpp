#include "recipe/dialects/shell_words.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "base/error.h"
#include "recipe/dialects/beside.h"
#include "recipe/dialects/shell_arithmetic.h"
#include "recipe/dialects/shell_branches.h"

namespace snug::dialects {

namespace {

constexpr size_t kLongestValue = 16384, kMostWords = 20000;

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Shell {
 public:
  Shell(std::string_view text, const std::string& where, int& sourced, const Started& started = {})
      : text_(text),
        where_(where),
        sourced_(sourced),
        variables_(started.variables),
        branches_(started.by_another ? &arrays_["@"] : nullptr) {
    if (started.arguments.empty()) return;
    arrays_["@"] = started.arguments;
    for (size_t i = 0; i < started.arguments.size(); ++i)
      if (!started.arguments[i].unread) variables_[std::to_string(i + 1)] = started.arguments[i].text;
  }

  Script read() {
    while (at_ < text_.size()) step();
    end_command();
    return {std::move(commands_), std::move(written_), std::move(blank_ends_), std::move(variables_)};
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
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
  bool ends_in_blanks() const {
    size_t next = at_ + 1;
    while (next < text_.size() && (text_[next] == ' ' || text_[next] == '\t' || text_[next] == '\r')) ++next;
    return next > at_ + 1 && !command_.empty() && next < text_.size() && (text_[next] == '\n' || text_[next] == '#');
  }

  // "> FILE" is no word of the command; "<( … )" is a command of its own.
  void redirection() {
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

  // Where a here-document of the command goes, "" for none that is known.
  std::string written_file() const {
    const bool tee = command_.size() == 2 && command_[0].text == "tee" && !command_[1].unread;
    return tee ? command_[1].text : redirected_to_;
  }

  void here_document() {
    at_ += 2;
    if (peek() == '-') ++at_;
    while (peek() == ' ') ++at_;
    bool unread = false;
    Span span;
    const std::string end = raw_word(unread, span);
    const bool quoted = text_.substr(span.begin, span.end - span.begin).find_first_of("'\"\\") != std::string_view::npos;
    if (!end.empty() && here_ends_.size() < 100) here_ends_.push_back({end, !quoted});
  }

  // "read -r -d '' NAME << END": the variable that a here-document goes into, "" for none.
  std::string read_into() const {
    const bool reads = command_.size() >= 2 && command_[0].text == "read";
    return reads && is_assignment(command_.back().text + "=") ? command_.back().text : "";
  }

  // Up to their last lines; the last one is what the command reads.
  void read_here_documents(const std::string& file, const std::string& variable) {
    for (const auto& [end, expands] : here_ends_) {
      std::string text;
      while (at_ < text_.size() && !ends_here_document(end)) here_line(expands, text);
      const bool last = &end == &here_ends_.back().end;
      if (last && !file.empty() && written_.size() < 100) written_.push_back({file, text});
      if (last && !variable.empty() && text.size() <= kLongestValue) variables_[variable] = joined(text);
    }
    here_ends_.clear();
  }

  // Lines that end in a backslash go on.
  static std::string joined(std::string text) {
    for (size_t at = text.find("\\\n"); at != std::string::npos; at = text.find("\\\n", at)) text.replace(at, 2, " ");
    return text;
  }

  // Whether the line at at_ is the last one; it is passed then.
  bool ends_here_document(const std::string& end) {
    const size_t stop = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, stop - at_);
    while (!line.empty() && (line.front() == '\t' || line.front() == ' ')) line.remove_prefix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line != end) return false;
    at_ = std::min(stop + 1, text_.size());
    return true;
  }

  // One line of it, with the script's variables put in.
  void here_line(bool expands, std::string& text) {
    while (at_ < text_.size()) {
      const char c = peek();
      if (text.size() > kLargestDocumentBytes) throw Error("a here-document of the script is too long", where_);
      bool unread = false;
      if (expands && c == '$' && (is_name_char(peek(1)) || peek(1) == '{')) {
        text += variable(unread);
        continue;
      }
      text += c;
      ++at_;
      if (c == '\n') return;
    }
  }

  // Where the brace that `text` begins with is closed.
  static size_t closing_brace(std::string_view text) {
    int depth = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      if (depth == 0) return at;
    }
    return std::string_view::npos;
  }

  // "${NAME[2]}", "${NAME[$i]}" of an array; of a loop over its numbers the first.
  std::optional<std::string> item(const std::string& array, std::string_view index) const {
    const auto known = arrays_.find(array);
    if (known == arrays_.end() || known->second.empty()) return std::nullopt;
    if (index.starts_with('$')) index.remove_prefix(1);
    const auto at = static_cast<size_t>(whole_number(std::string(index), variables_).value_or(0));
    if (at >= known->second.size() || known->second[at].unread) return std::nullopt;
    return known->second[at].text;
  }

  // "$( … )": up to its end, brackets counted.
  std::string substitution(size_t begin, bool& unread) {
    int depth = 0;
    do {
      depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
      ++at_;
    } while (at_ < text_.size() && depth > 0);
    if (depth > 0) throw Error("a bracket of the script is never closed", where_);
    const std::string_view whole = text_.substr(begin, at_ - begin);
    if (const auto value = reckoned(whole, variables_)) return std::to_string(*value);
    unread = true;
    return std::string(whole);
  }

  // The value of "$NAME" or "${NAME…}" at at_, which is passed; as it is written if only a shell knows it.
  std::string variable(bool& unread) {
    const size_t begin = at_++;
    std::string name, otherwise;
    bool has_other = false;
    if (peek() == '{') {
      constexpr size_t kLongestName = 1024;
      const size_t length = closing_brace(text_.substr(at_, kLongestName));
      if (length == std::string_view::npos) {
        unread = true;
        return "$";
      }
      const size_t close = at_ + length;
      std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
      at_ = close + 1;
      size_t end = 0;
      while (end < inside.size() && is_name_char(inside[end])) ++end;
      name = inside.substr(0, end);
      inside.remove_prefix(end);
      if (inside.starts_with(":-") || inside.starts_with(":=")) {
        otherwise = inside.substr(2);
        has_other = true;
      } else if (inside.starts_with("-")) {
        otherwise = inside.substr(1);
        has_other = true;
      } else if (inside.starts_with('[') && inside != "[@]" && inside != "[*]" && inside.ends_with(']')) {
        if (const std::optional<std::string> one = item(name, inside.substr(1, inside.size() - 2))) return *one;
        name.clear();
      } else if (!inside.empty() && inside != "[@]" && inside != "[*]") {
        name.clear();
      }
    } else if (peek() == '(') {
      return substitution(begin, unread);
    } else {
      const size_t first = at_;
      while (is_name_char(peek())) ++at_;
      name = text_.substr(first, at_ - first);
    }
    const bool of_an_option = name == "2" && !option_.empty();
    if (of_an_option)
      if (const auto given = of_option()) return *given;
    if (const auto known = variables_.find(name);
        !of_an_option && known != variables_.end() && (!known->second.empty() || !has_other))
      return known->second;
    if (has_other && otherwise.starts_with('$')) {  // "${A:-$B}", "${A:-${B}}"
      otherwise.erase(0, 1);
      if (otherwise.starts_with('{') && otherwise.ends_with('}')) otherwise = otherwise.substr(1, otherwise.size() - 2);
      if (const auto known = variables_.find(otherwise); known != variables_.end()) return known->second;
      otherwise = "$";
    }
    if (has_other && otherwise.find('$') == std::string::npos) {
      if (otherwise.size() >= 2 && (otherwise.front() == '"' || otherwise.front() == '\'') &&
          otherwise.back() == otherwise.front())
        otherwise = otherwise.substr(1, otherwise.size() - 2);
      return otherwise;
    }
    unread = true;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void append(std::string& made, const std::string& more) const {
    if (made.size() + more.size() > kLongestValue) throw Error("a word of the script is too long", where_);
    made += more;
  }

  // One word with its quotes taken off; at_ stands on its first byte and then behind its last.
  std::string raw_word(bool& unread, Span& span) {
    std::string made;
    span.begin = at_;
    char quote = '\0';
    for (; at_ < text_.size();) {
      const char c = peek();
      if (quote == '\0' && (std::string_view(" \t\n\r;&|()<>").find(c) != std::string_view::npos)) break;
      if (made.size() > kLongestValue) throw Error("a word of the script is too long", where_);
      if (quote != '\'' && c == '$' && (is_name_char(peek(1)) || peek(1) == '{' || peek(1) == '(')) {
        append(made, variable(unread));
      } else if (quote != '\'' && c == '`') {
        unread = true;
        made += c;
        ++at_;
      } else if (quote != '\'' && c == '\\') {
        const char next = peek(1);
        if (next == '\n') {
          // the line goes on
        } else if (quote == '"' && next != '"' && next != '\\' && next != '$' && next != '`') {
          made += c;
          made += next;
        } else if (next != '\0') {
          made += next;
        }
        at_ += next == '\0' ? 1 : 2;
      } else if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
        ++at_;
      } else if (quote != '\0' && c == quote) {
        quote = '\0';
        ++at_;
      } else {
        made += c;
        ++at_;
      }
    }
    if (quote != '\0') throw Error("a quote of the script is never closed", where_);
    span.end = at_;
    return made;
  }

  void push(Word word) {
    if (++words_ > kMostWords) throw Error("the script holds too many words", where_);
    command_.push_back(std::move(word));
  }

  void word() {
    const size_t begin = at_;
    // NAME=( … ): an array; its words are kept for "${NAME[@]}".
    size_t name_end = begin;
    while (name_end < text_.size() && is_name_char(text_[name_end])) ++name_end;
    const bool adds = name_end > begin && text_.substr(name_end).starts_with("+=(");
    if (name_end > begin && (adds || text_.substr(name_end).starts_with("=("))) {
      const std::string name(text_.substr(begin, name_end - begin));
      at_ = name_end + (adds ? 3 : 2);
      return array(name, adds);
    }
    Word word;
    word.text = raw_word(word.unread, word.span);
    if (word.span.end == word.span.begin) {
      ++at_;
      return;
    }
    if ((peek() == '>' || peek() == '<') && word.text.find_first_not_of("0123456789") == std::string::npos) return;  // 2>&1
    const std::string_view raw = text_.substr(word.span.begin, word.span.end - word.span.begin);
    if (take_array(raw)) return;
    if (raw[0] == '$' && word.text != raw && word.text.find_first_of(" \t\n") != std::string::npos) {
      for (std::string& part : split(word.text)) push({std::move(part), word.span, false, word.unread});
      return;
    }
    push(std::move(word));
  }

  // "${NAME[@]}", "$@", quoted or not.
  bool take_array(std::string_view raw) {
    if (raw.starts_with('"') && raw.ends_with('"') && raw.size() > 2) raw = raw.substr(1, raw.size() - 2);
    if (raw == "$@" || raw == "$*" || raw == "${@}" || raw == "${*}") raw = "${@[@]}";
    if (!raw.starts_with("${") || !(raw.ends_with("[@]}") || raw.ends_with("[*]}"))) return false;
    const auto known = arrays_.find(std::string(raw.substr(2, raw.size() - 6)));
    if (known == arrays_.end()) return false;
    for (const Word& word : known->second) push(word);
    return true;
  }

  void array(const std::string& name, bool adds) {
    Command outer;
    std::swap(outer, command_);
    if (adds) command_ = arrays_[name];
    while (at_ < text_.size() && peek() != ')') {
      const size_t before = at_;
      const char c = peek();
      if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == '\\' || c == '#') {
        if (c == '\n') {
          ++at_;
        } else {
          step_inside();
        }
      } else {
        word();
      }
      if (at_ == before) ++at_;
    }
    ++at_;
    if (command_.size() + words_ > kMostWords) throw Error("the script holds too many words", where_);
    words_ += command_.size();
    arrays_[name] = std::move(command_);
    command_ = std::move(outer);
  }

  void step_inside() {
    if (peek() == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (peek() == '\\' && peek(1) != '\n' && peek(1) != '\r') {
      word();
    } else {
      ++at_;
    }
  }

  void end_command() {
    redirected_to_.clear();
    take_option();
    const size_t end = std::min(at_, text_.size());  // of a script that ends within a word at_ may be beyond
    const std::string_view behind = end > 0 ? text_.substr(end - 1) : std::string_view();
    if (!branches_.is_run(command_, behind)) return command_.clear();
    bool all = true;
    for (size_t i = 0; i < command_.size() && all; ++i) {
      const std::string& text = command_[i].text;
      if (i == 0 && (text == "export" || text == "local" || text == "declare" || text == "readonly")) continue;
      all = is_assignment(text) || appends(text);
      if (all && variables_.size() < 4096) assign(text, command_[i].unread);
    }
    take_loop();
    take_source();
    commands_.push_back(std::move(command_));
    command_.clear();
    if (Command words = given_to_a_shell(commands_.back()); !words.empty()) commands_.back() = std::move(words);
  }

  // "NAME+=VALUE"
  static bool appends(const std::string& word) {
    const size_t plus = word.find("+=");
    return plus != std::string::npos && is_assignment(word.substr(0, plus) + "=");
  }

  // `unread`: only a shell knows the value; one that it had before holds, as where nobody gives the script anything.
  void assign(const std::string& word, bool unread) {
    const bool adds = appends(word);
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals - (adds ? 1 : 0));
    if (unread && (!variables_.contains(name) || variables_[name].empty())) variables_.erase(name);
    if (unread) return;
    std::string& value = variables_[name];
    if (!adds) value.clear();
    append(value, word.substr(equals + 1));
  }

  // "case $1 in --rows) ROWS=$2": there "$2" is what the option is given.
  void take_option() {
    if (command_.empty()) return;
    const std::string& first = command_[0].text;
    if (first == "esac") option_.clear();
    if (command_.size() == 1 && first.starts_with('-') && at_ > 0 && at_ <= text_.size() && text_[at_ - 1] == ')')
      option_ = first;
  }

  std::optional<std::string> of_option() const {
    const auto all = arrays_.find("@");
    if (option_.empty() || all == arrays_.end()) return std::nullopt;
    const auto found = std::ranges::find(all->second, option_, &Word::text);
    if (found == all->second.end() || found + 1 == all->second.end() || (found + 1)->unread) return std::nullopt;
    return (found + 1)->text;
  }

  // "for NAME in A B": as if it were taken once.
  void take_loop() {
    if (command_.size() < 4 || command_[0].text != "for" || command_[2].text != "in" || command_[3].unread) return;
    if (variables_.size() < 4096) variables_[command_[1].text] = command_[3].text;
  }

  // "source FILE": what it sets, where it lies beside the script. Its folder is mostly reckoned out by the shell.
  void take_source() {
    constexpr int kMostFiles = 16;  // in all: files may source one another
    if (command_.size() != 2 || (command_[0].text != "source" && command_[0].text != ".") || sourced_ >= kMostFiles) return;
    const auto text = read_beside(where_, command_[1].text, static_cast<int64_t>(kLargestDocumentBytes));
    if (!text) return;
    ++sourced_;
    try {
      Shell sourced(*text, where_, sourced_);
      sourced.variables_ = variables_;
      variables_ = sourced.read().variables;
    } catch (const Error&) {
      return;  // as if it were not there
    }
  }

  std::string_view text_;
  const std::string& where_;
  int& sourced_;  // files so far, of all
  size_t at_ = 0, words_ = 0;
  std::map<std::string, std::string> variables_;
  std::map<std::string, std::vector<Word>> arrays_;
  ShellBranches branches_;
  std::string option_;  // whose branch of a case is read
  struct HereEnd {
    std::string end;
    bool expands;  // variables in what comes before
  };
  std::vector<HereEnd> here_ends_;
  std::string redirected_to_;
  Command command_;
  std::vector<Command> commands_;
  std::vector<WrittenFile> written_;
  std::vector<int64_t> blank_ends_;
};

}  // namespace

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name_char) &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

Script shell_commands(std::string_view text, const std::string& where, const Started& started) {
  int sourced = 0;
  return Shell(text, where, sourced, started).read();
}

}  // namespace snug::dialects
