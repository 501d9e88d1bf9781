// Here-documents of a shell script: what is written into files and variables.

#include <algorithm>

#include "base/error.h"
#include "recipe/dialects/shell_reader.h"

namespace snug::dialects {

// Where a here-document of the command goes, "" for none that is known.
std::string ShellReader::written_file() const {
  const bool tee = command_.size() == 2 && command_[0].text == "tee" && !command_[1].unread;
  return tee ? command_[1].text : redirected_to_;
}

void ShellReader::here_document() {
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
std::string ShellReader::read_into() const {
  const bool reads = command_.size() >= 2 && command_[0].text == "read";
  return reads && is_assignment(command_.back().text + "=") ? command_.back().text : "";
}

// Up to their last lines; the last one is what the command reads.
void ShellReader::read_here_documents(const std::string& file, const std::string& variable) {
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
std::string ShellReader::joined(std::string text) {
  for (size_t at = text.find("\\\n"); at != std::string::npos; at = text.find("\\\n", at)) text.replace(at, 2, " ");
  return text;
}

// Whether the line at at_ is the last one; it is passed then.
bool ShellReader::ends_here_document(const std::string& end) {
  const size_t stop = std::min(text_.find('\n', at_), text_.size());
  std::string_view line = text_.substr(at_, stop - at_);
  while (!line.empty() && (line.front() == '\t' || line.front() == ' ')) line.remove_prefix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line != end) return false;
  at_ = std::min(stop + 1, text_.size());
  return true;
}

// One line of it, with the script's variables put in.
void ShellReader::here_line(bool expands, std::string& text) {
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

}  // namespace snug::dialects
