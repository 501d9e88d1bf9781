#pragma once
// What a shell can say of a command's flags: from the command table, the rows of its page of help, and the key table.

#include <string>
#include <string_view>
#include <vector>

#include "ask/options.h"
#include "cli/command_table.h"

namespace snug::cli {

struct FlagWords {
  std::string name;  // "gpu"
  Takes takes = Takes::nothing;
  std::string value;               // what stands behind it, as the help calls it: "NAME", "none|disk"
  std::string help;                // a line; "" where the page has none
  Names names = Names::nothing;    // what the value names
  std::vector<std::string> words;  // that the value may be
};

// The command's own flags, in its order.
std::vector<FlagWords> own_flag_words(const Command& command);

// Recipe keys as flags, and those of their other names that are one word, such as --batch.
const std::vector<FlagWords>& key_flag_words();

// A line about a command, from the overview.
std::string summary_of(std::string_view command);

// Names of models, accelerators, commands and topics, shells.
std::vector<std::string> all_names(Names of);

}  // namespace snug::cli
