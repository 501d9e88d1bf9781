#pragma once
// The command line: turns arguments into recipes, runs one command, prints. The only room that prints.

namespace snug::cli {

// Exit codes: 0 done; 1 bad input or failure; 2 usage; 3 does not fit; 130 and 143 stopped by a signal after saving.
int run(int argc, char** argv);

}  // namespace snug::cli
