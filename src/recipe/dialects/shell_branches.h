#pragma once
// Which commands of a shell script are run, where its conditions compare what the script itself knows: "if [ "$SIZE" = big
// ]", "case $SIZE in", "[ … ] && …". What only a shell knows leaves all branches in.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/dialects/shell_words.h"

namespace snug::dialects {

class ShellBranches {
 public:
  // `options`: the words that the script is started with; null where that is not known.
  explicit ShellBranches(const Command* options) : options_(options) {}

  // Told of each command where it ends, `behind` being the text from what ends it on. Takes "if", "then" and their like off
  // the command. False: it is not run.
  bool is_run(Command& command, std::string_view behind);

 private:
  struct Branch {
    bool of_case = false;
    std::optional<bool> now;      // whether the branch is taken; none: only a shell knows
    std::optional<bool> earlier;  // whether one before it was
    std::string subject;          // of a case; only where it is `known`
    bool known = false, awaits = false;
    bool of_options = false;  // a loop over all that the script is started with
  };

  bool take_keyword(Command& command, std::string_view behind);
  bool take_pattern(Command& command, std::string_view behind);
  bool all_taken() const;

  const Command* options_;
  std::vector<Branch> branches_;
  bool skips_next_ = false;
};

// The words of "eval LINE" and "srun … bash -c LINE", up to where its first command ends; none for other commands.
Command given_to_a_shell(const Command& command);

}  // namespace snug::dialects
