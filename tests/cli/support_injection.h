#pragma once
// Runs the program with failures injected by a preloaded library (inject_failures.cpp), and tells what came of them.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/support_process.h"

namespace snug::cli_tests {

struct Injection {
  std::string calls;  // "write", "open,read", …
  std::string how;    // an errno's number, "short", "interrupt", "kill", "full", "jump"
  int64_t at = 0;     // which call, from 1; `full`: bytes
  bool and_later = false;
  std::filesystem::path below;  // only paths that start so
  int64_t seconds = 0;          // of `jump`
};

struct Injected {
  ProcessResult result;
  int64_t calls = 0;           // that matched
  int64_t injected = 0;        // of them
  std::filesystem::path path;  // of the first of them
  std::vector<int64_t> ends;   // the first and the last call on each file
};

// `scratch`: a directory outside of what is injected.
Injected run_injected(const std::vector<std::string>& arguments, const Injection& injection,
                      const std::filesystem::path& scratch);

// "" if stderr ends in one line "snug: …", the only one that starts so, that names `path` and says in brackets what to do;
// else what is wrong.
std::string fault_of(const ProcessResult& refused, const std::filesystem::path& path);

}  // namespace snug::cli_tests
