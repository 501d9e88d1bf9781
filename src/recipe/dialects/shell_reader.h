#pragma once
// Reads a shell script word by word and command by command; what shell_words.h promises.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/shell_branches.h"
#include "recipe/dialects/shell_words.h"

namespace snug::dialects {

class ShellReader {
 public:
  // `sourced`: files so far, of all.
  ShellReader(std::string_view text, const std::string& where, int& sourced, const Started& started = {});

  Script read();

 private:
  static constexpr size_t kLongestValue = 16384, kMostWords = 20000, kMostVariables = 4096;
  static constexpr int kDeepestCall = 8;

  struct HereEnd {
    std::string end;
    bool expands;  // variables in what comes before
  };

  // "name() { … }": read where it is called.
  struct Function {
    std::string text;  // of another file; "" of this one
    size_t begin = 0, end = 0;
    bool called = false;
  };

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void step();
  bool ends_in_blanks() const;
  bool passes_remark();
  void redirection();

  std::string written_file() const;
  void here_document();
  std::string read_into() const;
  void read_here_documents(const std::string& file, const std::string& variable);
  static std::string joined(std::string text);
  bool ends_here_document(const std::string& end);
  void here_line(bool expands, std::string& text);

  static size_t closing_brace(std::string_view text);
  std::optional<std::string> item(const std::string& array, std::string_view index) const;
  std::optional<std::string> folder_of_the_script(std::string_view whole) const;
  std::string substitution(size_t begin, bool& unread);
  // "${name:-otherwise}"
  struct Expansion {
    std::string name;
    std::optional<std::string> otherwise, item;  // item: "${name[2]}" of an array that is known
    bool assigns = false;                        // ":="
  };
  Expansion expansion(std::string_view inside) const;
  std::optional<std::string> default_of(const Expansion& read, bool& unread);
  std::string variable(bool& unread);
  void append(std::string& made, const std::string& more) const;
  std::string raw_word(bool& unread, Span& span);
  void push(Word word);
  void word();
  bool take_array(std::string_view raw);
  void array(const std::string& name, bool adds);
  void step_inside();

  void end_command();
  void empty_unset();
  static bool appends(const std::string& word);
  void assign(const std::string& word, bool unread);
  void take_option();
  std::optional<std::string> of_option() const;
  void take_loop();
  void take_arguments();
  void give(Command arguments);
  void take_source();

  bool take_function();
  size_t end_of_function(size_t begin) const;
  bool call_function();

  std::string_view text_;   // of a function that is read: up to its end
  std::string_view whole_;  // of the file
  const std::string& where_;
  int& sourced_;
  size_t at_ = 0, words_ = 0;
  std::map<std::string, std::string> variables_;  // an item of an array that has words for places: "NAME[word]"
  std::set<std::string> with_unread_;             // of them: lines with words that only a shell knows, as they are written
  std::map<std::string, std::vector<Word>> arrays_;
  std::map<std::string, Function> functions_;
  ShellBranches branches_;
  bool reads_all_;             // functions where they stand
  int calls_ = 0;              // that are open
  int looks_ = 0;              // for what sets a variable
  std::string option_;         // whose branch of a case is read
  bool shifts_first_ = false;  // the option itself is shifted away before
  std::vector<HereEnd> here_ends_;
  std::string redirected_to_;
  Command command_;
  std::vector<Command> commands_;
  std::vector<WrittenFile> written_;
  std::vector<int64_t> blank_ends_;
};

inline bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace snug::dialects
