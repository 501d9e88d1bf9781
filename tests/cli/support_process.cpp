#include "cli/support_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace snug::cli_tests {

namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error(std::string("no pipe: ") + std::strerror(errno));
  return ends;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  all.try_emplace("OMP_WAIT_POLICY", "passive");  // tests share their cores
  all["XDG_CACHE_HOME"] = "/nonexistent";         // what this machine's runs left is no part of a test
  for (const auto& [name, value] : changes) all[name] = value;
  std::vector<std::string> list;
  for (const auto& [name, value] : all) list.push_back(std::string(name).append("=").append(value));
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

[[noreturn]] void become(const ProcessOptions& options, char* const* arguments, char* const* environment, int output,
                         int error) {
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  signal(SIGXFSZ, SIG_IGN);  // a file at its limit is an error of write, as a full disk is
  for (const auto& [resource, value] : options.limits) {
    const rlimit limit{value, value};
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  }
  if (options.directory.empty() || chdir(options.directory.c_str()) == 0)
    execve(options.program.c_str(), arguments, environment);
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  std::vector<std::string> words = {options.program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(environment);
  const std::array<int, 2> output = make_pipe(), error = make_pipe();
  fcntl(error[1], F_SETPIPE_SZ, 4096);
  process_ = fork();
  if (process_ < 0) throw std::runtime_error(std::string("no process: ") + std::strerror(errno));
  if (process_ == 0) become(options, argv.data(), envp.data(), output[1], error[1]);
  close(output[1]);
  close(error[1]);
  output_ = output[0];
  error_ = error[0];
}

Process::~Process() {
  if (!reaped_) {
    send(SIGKILL);
    reap(0);
  }
  if (output_ >= 0) close(output_);
  if (error_ >= 0) close(error_);
}

void Process::send(int signal) const {
  if (!reaped_) kill(process_, signal);
}

void Process::reap(int options) {
  int status = 0;
  rusage usage{};
  if (reaped_ || wait4(process_, &status, options, &usage) != process_) return;
  reaped_ = true;
  result_.disk_read = usage.ru_inblock * 512;
  result_.disk_written = usage.ru_oublock * 512;
  if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
}

bool Process::read_some(int milliseconds) {
  std::array<pollfd, 2> ends = {{{output_, POLLIN, 0}, {error_, POLLIN, 0}}};
  if (output_ < 0 && error_ < 0) return false;
  const bool gone = reaped_;
  const int ready = poll(ends.data(), ends.size(), gone ? 0 : milliseconds);
  if (ready == 0 && gone) return false;  // a child of the program may hold the pipes open
  if (ready == 0) reap(WNOHANG);
  for (const auto& [end, descriptor, text] :
       {std::tuple{ends[0], &output_, &result_.output}, std::tuple{ends[1], &error_, &result_.error}}) {
    if (end.revents == 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t count = read(*descriptor, buffer.data(), buffer.size());
    if (count > 0) text->append(buffer.data(), static_cast<size_t>(count));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      close(*descriptor);
      *descriptor = -1;
    }
  }
  return true;
}

bool Process::wait_for_error_lines(size_t lines) {
  const auto seen = [&] { return static_cast<size_t>(std::count(result_.error.begin(), result_.error.end(), '\n')); };
  while (seen() < lines)
    if (!read_some(5)) return false;
  return true;
}

ProcessResult Process::finish() {
  while (read_some(5)) {
  }
  reap(0);
  return result_;
}

ProcessResult run_program(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  return Process(arguments, options).finish();
}

}  // namespace snug::cli_tests
