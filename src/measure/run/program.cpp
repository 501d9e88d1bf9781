#include "measure/run/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "measure/run/carried.h"
#include "measure/run/result.h"

namespace snug {

namespace {

using Environment = std::map<std::string, std::string>;

Environment inherited() {
  Environment all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

// In front of what the variable holds already.
void prepend(Environment& environment, const std::string& name, const std::string& value) {
  std::string& now = environment[name];
  now = now.empty() ? value : value + ":" + now;
}

constexpr std::string_view kExpandable = "expandable_segments";

// What is changed by the environment, and words for the Python side.
void change(Environment& environment, const std::vector<std::string>& changes) {
  environment["SNUG_MEASURE_CHANGES"] = fmt::format("{}", fmt::join(changes, ","));
  if (std::ranges::find(changes, kExpandable) == changes.end()) return;
  for (const char* name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    std::string& now = environment[name];
    now += std::string(now.empty() ? "" : ",") + std::string(kExpandable) + ":True";
  }
}

std::vector<std::string> changed(const std::vector<std::string>& changes, const std::filesystem::path& directory) {
  std::vector<std::string> done;
  std::ifstream file(directory / "changed");
  for (std::string word; std::getline(file, word);) done.push_back(word);
  if (std::ranges::find(changes, kExpandable) != changes.end()) done.emplace_back(kExpandable);
  std::ranges::sort(done);
  done.erase(std::unique(done.begin(), done.end()), done.end());
  return done;
}

Environment environment_of(const MeasureRequest& request, const std::filesystem::path& directory) {
  Environment all = inherited();
  const std::filesystem::path libraries = directory / "lib";
  prepend(all, "LD_PRELOAD", libraries / "libsnug_null_device.so");
  prepend(all, "LD_LIBRARY_PATH", libraries);
  prepend(all, "PYTHONPATH", directory / "python");
  all["SNUG_MEASURE_DIR"] = directory;
  all["SNUG_MEASURE_SYNTHETIC"] = request.synthetic ? "1" : "0";
  all["SNUG_MEASURE_STEPS"] = std::to_string(request.steps);
  all["SNUG_MEASURE_SNAPSHOT"] = request.snapshot.empty() ? directory / "out_of_memory.pickle" : request.snapshot;
  all["SNUG_NULL_NAME"] = request.device.name;
  all["SNUG_NULL_MEMORY"] = std::to_string(request.device.memory_bytes);
  all["SNUG_NULL_CONTEXT"] = std::to_string(request.device.context_bytes);
  all["SNUG_NULL_SM"] = std::to_string(request.device.compute_capability);
  all["SNUG_NULL_MULTIPROCESSORS"] = std::to_string(request.device.multiprocessors);
  all["SNUG_NULL_DEVICES"] = std::to_string(request.device.count);
  change(all, request.changes);
  all.try_emplace("WANDB_MODE", "disabled");
  if (request.synthetic) all.try_emplace("HF_HUB_OFFLINE", "1");
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// While the program runs, Ctrl-C is the program's: what it measured is still wanted.
class SignalsLeftToProgram {
 public:
  SignalsLeftToProgram() : interrupt_(std::signal(SIGINT, SIG_IGN)), quit_(std::signal(SIGQUIT, SIG_IGN)) {}
  SignalsLeftToProgram(const SignalsLeftToProgram&) = delete;
  SignalsLeftToProgram& operator=(const SignalsLeftToProgram&) = delete;
  ~SignalsLeftToProgram() {
    std::signal(SIGINT, interrupt_);
    std::signal(SIGQUIT, quit_);
  }

 private:
  using Handler = void (*)(int);
  Handler interrupt_, quit_;
};

pid_t start(std::vector<std::string> command, const Environment& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, command[0].c_str(), nullptr, &attributes, pointers(command).data(),
                                   pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw Error(std::strerror(error), command[0], "after --, give the command as you run it: python train.py");
  return process;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

RunDirectory::RunDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "snug-measure-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Error(std::strerror(errno), pattern, "set TMPDIR to a directory that can be written");
  path_ = pattern;
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Measurement measure(const MeasureRequest& request, const RunDirectory& directory) {
  write_carried_files(directory.path());
  Measurement measurement;
  {
    const SignalsLeftToProgram left;
    measurement.exit_code = wait_for(start(request.command, environment_of(request, directory.path())));
  }
  measurement.ranks = read_results(directory.path() / "results");
  measurement.changed = changed(request.changes, directory.path());
  return measurement;
}

}  // namespace snug
