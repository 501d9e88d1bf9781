#pragma once
// The words of a shell script, command by command, with variables that the script itself sets put in. Nothing is run: what
// only a shell could know ("$1", "$(nproc)") stays as it is written and is marked. Not a shell: loops, and
// conditions on what it does not know, are read through as if all were taken once; functions where they are called.

#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/document.h"
#include "recipe/dialects/shell_arithmetic.h"

namespace snug::dialects {

struct Word {
  std::string text;
  Span span;             // bytes where it stands; of a word that came out of an array, inside the array
  bool in_place = true;  // the bytes at `span` are this word and nothing else
  bool unread = false;   // holds something that only a shell knows
};

using Command = std::vector<Word>;  // assignments before the command are its first words

// "cat > FILE << END": what the script writes into a file.
struct WrittenFile {
  std::string name, text;
};

struct Script {
  std::vector<Command> commands;
  std::vector<WrittenFile> written;
  // Lines whose last backslash stands before blanks or a remark: a shell ends the command there, which nobody means. Read
  // on.
  std::vector<int64_t> blank_ends;
  ShellVariables variables;  // as the script leaves them
  bool uncalled = false;     // it has functions that nothing calls, which are not read
};

// What a script is started with by another.
struct Started {
  ShellVariables variables;
  Command arguments;  // "$1", "$@"
  bool by_another = false;
  bool reads_all = false;  // functions where they stand, called or not
};

// Throws Error for scripts that are out of all proportion.
Script shell_commands(std::string_view text, const std::string& where, const Started& started = {});

// True for "NAME=value"; the name is then text up to "=".
bool is_assignment(std::string_view word);

}  // namespace snug::dialects
