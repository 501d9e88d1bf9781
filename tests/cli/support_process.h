#pragma once
// Runs the built program as a child process, as a user would: arguments, environment, both outputs, exit code, limits,
// signals at chosen moments. A child's stderr is a pipe of one page, so that a run that prints a line a step cannot get more
// than about forty steps ahead of the test that watches it.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace snug::cli_tests {

struct ProcessOptions {
  std::filesystem::path program = SNUG_BINARY_DIR "/snug";
  std::map<std::string, std::string> environment;  // over the test's own
  std::map<int, rlim_t> limits;                    // RLIMIT_… to bytes or seconds
  std::filesystem::path directory;                 // to run in; empty: the test's own
};

struct ProcessResult {
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;      // … this one
  std::string output, error;
  int64_t disk_read = 0, disk_written = 0;  // bytes, as the kernel counts them
};

class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills and reaps what still runs

  // Reads until stderr holds `lines` whole lines. False if the program ended before.
  bool wait_for_error_lines(size_t lines);
  void send(int signal) const;
  pid_t id() const { return process_; }
  // Reads to the end and reaps. Does not wait for what a killed program's children may still write.
  ProcessResult finish();

 private:
  bool read_some(int milliseconds);  // false once both pipes are closed, or the program is gone and they are empty
  void reap(int options);

  pid_t process_ = -1;
  int output_ = -1, error_ = -1;
  bool reaped_ = false;
  ProcessResult result_;
};

ProcessResult run_program(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace snug::cli_tests
