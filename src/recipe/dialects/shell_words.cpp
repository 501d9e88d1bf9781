// Words of a shell script, and the variables in them.

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "recipe/dialects/shell_arithmetic.h"
#include "recipe/dialects/shell_reader.h"

namespace snug::dialects {

// Where the brace that `text` begins with is closed.
size_t ShellReader::closing_brace(std::string_view text) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    if (depth == 0) return at;
  }
  return std::string_view::npos;
}

// "${NAME[2]}", "${NAME[$i]}" of an array; of a loop over its numbers the first.
std::optional<std::string> ShellReader::item(const std::string& array, std::string_view index) const {
  std::string word(index);
  std::erase_if(word, [](char c) { return c == '"' || c == '\'' || c == '$' || c == '{' || c == '}'; });
  const auto named = variables_.find(word);
  const std::string& place = index.find('$') == std::string_view::npos || named == variables_.end() ? word : named->second;
  if (const auto one = variables_.find(array + "[" + place + "]"); one != variables_.end()) return one->second;
  const auto known = arrays_.find(array);
  if (known == arrays_.end() || known->second.empty()) return std::nullopt;
  if (index.starts_with('$')) index.remove_prefix(1);
  const auto at = static_cast<size_t>(whole_number(std::string(index), variables_).value_or(0));
  if (at >= known->second.size() || known->second[at].unread) return std::nullopt;
  return known->second[at].text;
}

// "$(cd "$(dirname "$0")/.." && pwd)", "$(dirname "$HERE")": from where the script lies; none for others.
std::optional<std::string> ShellReader::folder_of_the_script(std::string_view whole) const {
  const size_t name = whole.find("dirname");
  if (name == std::string_view::npos || whole.size() > 300) return std::nullopt;
  std::string folder;
  if (whole.find("BASH_SOURCE") != std::string_view::npos || whole.find("$0") != std::string_view::npos ||
      whole.find("${0") != std::string_view::npos) {
    folder = ".";
  } else {
    const size_t dollar = whole.find('$', name);
    if (dollar == std::string_view::npos) return std::nullopt;
    size_t begin = dollar + 1 + (whole.substr(dollar).starts_with("${") ? 1 : 0), end = begin;
    while (end < whole.size() && is_name_char(whole[end])) ++end;
    const auto known = variables_.find(std::string(whole.substr(begin, end - begin)));
    if (known == variables_.end() || !known->second.starts_with(".")) return std::nullopt;
    folder = known->second + "/..";
  }
  for (size_t up = whole.find("/.."); up != std::string_view::npos; up = whole.find("/..", up + 3)) folder += "/..";
  return folder;
}

// "$( … )": up to its end, brackets counted.
std::string ShellReader::substitution(size_t begin, bool& unread) {
  int depth = 0;
  do {
    depth += peek() == '(' ? 1 : peek() == ')' ? -1 : 0;
    ++at_;
  } while (at_ < text_.size() && depth > 0);
  if (depth > 0) throw Error("a bracket of the script is never closed", where_);
  const std::string_view whole = text_.substr(begin, at_ - begin);
  if (const auto value = reckoned(whole, variables_)) return std::to_string(*value);
  if (const auto folder = folder_of_the_script(whole)) return *folder;
  unread = true;
  return std::string(whole);
}

// What stands between the braces of "${NAME…}"; no name for what only a shell works out ("${NAME%.*}").
ShellReader::Expansion ShellReader::expansion(std::string_view inside) const {
  Expansion read;
  size_t end = 0;
  while (end < inside.size() && is_name_char(inside[end])) ++end;
  read.name = inside.substr(0, end);
  inside.remove_prefix(end);
  if (inside.starts_with(":-") || inside.starts_with(":=")) {
    read.otherwise = inside.substr(2);
    read.assigns = inside.starts_with(":=");
  } else if (inside.starts_with("-")) {
    read.otherwise = inside.substr(1);
  } else if (inside.starts_with('[') && inside != "[@]" && inside != "[*]" && inside.ends_with(']')) {
    read.item = item(read.name, inside.substr(1, inside.size() - 2));
    read.name.clear();
  } else if (!inside.empty() && inside != "[@]" && inside != "[*]") {
    read.name.clear();
  }
  return read;
}

// The default of "${NAME:-default}", itself perhaps a variable; none if only a shell knows it.
std::optional<std::string> ShellReader::default_of(const Expansion& read, bool& unread) {
  std::string text = *read.otherwise;
  if (text.starts_with('$')) {  // "${A:-$B}", "${A:-${B}}"
    text.erase(0, 1);
    if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
    const auto known = variables_.find(text);
    if (known == variables_.end()) return std::nullopt;
    unread = unread || with_unread_.contains(text);
    return known->second;
  }
  if (text.find('$') != std::string::npos) return std::nullopt;
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  if (read.assigns && !read.name.empty()) variables_[read.name] = text;
  return text;
}

// The value of "$NAME" or "${NAME…}" at at_, which is passed; as it is written if only a shell knows it.
std::string ShellReader::variable(bool& unread) {
  const size_t begin = at_++;
  if (peek() == '(') return substitution(begin, unread);
  Expansion read;
  if (peek() == '{') {
    constexpr size_t kLongestName = 1024;
    const size_t length = closing_brace(text_.substr(at_, kLongestName));
    if (length == std::string_view::npos) {
      unread = true;
      return "$";
    }
    read = expansion(text_.substr(at_ + 1, length - 1));
    at_ += length + 1;
    if (read.item) return *read.item;
  } else {
    const size_t first = at_;
    while (is_name_char(peek())) ++at_;
    read.name = text_.substr(first, at_ - first);
  }
  const bool of_an_option = read.name == (shifts_first_ ? "1" : "2") && !option_.empty();
  if (of_an_option)
    if (const auto given = of_option()) return *given;
  if (const auto known = variables_.find(read.name);
      !of_an_option && known != variables_.end() && (!known->second.empty() || !read.otherwise)) {
    unread = unread || with_unread_.contains(read.name);
    return known->second;
  }
  if (read.otherwise)
    if (const auto other = default_of(read, unread)) return *other;
  unread = true;
  return std::string(text_.substr(begin, at_ - begin));
}

void ShellReader::append(std::string& made, const std::string& more) const {
  if (made.size() + more.size() > kLongestValue) throw Error("a word of the script is too long", where_);
  made += more;
}

// One word with its quotes taken off; at_ stands on its first byte and then behind its last.
std::string ShellReader::raw_word(bool& unread, Span& span) {
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

void ShellReader::push(Word word) {
  if (++words_ > kMostWords) throw Error("the script holds too many words", where_);
  command_.push_back(std::move(word));
}

void ShellReader::word() {
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
    for (std::string& part : split(word.text)) {
      const bool unread = word.unread && part.find('$') != std::string::npos;
      push({std::move(part), word.span, false, unread});
    }
    return;
  }
  push(std::move(word));
}

// "${NAME[@]}", "$@", quoted or not.
bool ShellReader::take_array(std::string_view raw) {
  if (raw.starts_with('"') && raw.ends_with('"') && raw.size() > 2) raw = raw.substr(1, raw.size() - 2);
  if (raw == "$@" || raw == "$*" || raw == "${@}" || raw == "${*}") raw = "${@[@]}";
  if (!raw.starts_with("${") || !(raw.ends_with("[@]}") || raw.ends_with("[*]}"))) return false;
  const auto known = arrays_.find(std::string(raw.substr(2, raw.size() - 6)));
  if (known == arrays_.end()) return false;
  for (const Word& word : known->second) push(word);
  return true;
}

void ShellReader::array(const std::string& name, bool adds) {
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
  for (const Word& word : command_)  // "declare -A NAME=([key]=value)"
    if (word.text.starts_with('[') && word.text.find("]=") != std::string::npos && !word.unread)
      assign(name + word.text, false);
  arrays_[name] = std::move(command_);
  command_ = std::move(outer);
}

void ShellReader::step_inside() {
  if (peek() == '#') {
    at_ = std::min(text_.find('\n', at_), text_.size());
  } else if (peek() == '\\' && peek(1) != '\n' && peek(1) != '\r') {
    word();
  } else {
    ++at_;
  }
}

bool is_assignment(std::string_view word) {
  const size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos) return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), is_name_char) &&
         (word[0] < '0' || word[0] > '9');
}

}  // namespace snug::dialects
