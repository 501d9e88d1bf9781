#include "cli/ranks.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "cli/process.h"
#include "comm/agree.h"
#include "recipe/keys.h"
#include "train/run_state.h"

namespace snug::cli {

namespace {

constexpr size_t kMostStarted = 256;
std::array<std::atomic<pid_t>, kMostStarted> started{};  // for the handler, which may touch nothing else

// The terminal sends its signals to all of them; what was sent to this process alone is passed on.
extern "C" void pass_on(int signal) {
  const int before = errno;
  for (const std::atomic<pid_t>& process : started)
    if (const pid_t id = process.load(); id > 0) kill(id, signal);
  errno = before;
}

void pass_signals_on() {
  struct sigaction action {};
  action.sa_handler = pass_on;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGINT, SIG_IGN);
}

[[noreturn]] void become_rank(const OwnLaunch& launch, int64_t rank, pid_t parent, std::span<char* const> words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  launch.set_environment(rank);
  std::string name = "snug", command = "train";
  std::vector<char*> arguments = {name.data(), command.data()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

// What must be the same for all ranks; how many cores and bytes each has need not.
std::string what_runs(const Plan& plan) {
  std::string text = fmt::format("{} {} {} {}", kSnugVersion, plan.program.total_parameters(),
                                 plan.program.trainable_parameters(), plan.program.seq_len);
  for (const Key& key : recipe_keys())
    if (key.get && key.name != "threads" && key.name != "memory")
      text += fmt::format("\n{}: {}", key.name, key.get(plan.recipe));
  return text;
}

// The rank of a process; none if it is none of them.
std::optional<size_t> rank_of(pid_t process) {
  const auto found = std::find_if(started.begin(), started.end(), [&](const auto& id) { return id.load() == process; });
  return found == started.end() ? std::nullopt : std::optional(static_cast<size_t>(found - started.begin()));
}

}  // namespace

int launch_ranks(int64_t ranks, std::span<char* const> words) {
  if (ranks > static_cast<int64_t>(kMostStarted))
    throw Error(fmt::format("{} processes on one machine", ranks), "num_processes",
                fmt::format("give at most {}", kMostStarted));
  const OwnLaunch launch(ranks);
  pass_signals_on();
  const pid_t parent = getpid();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw Error(fmt::format("process {} cannot be started: {}", rank, std::strerror(errno)), "num_processes");
    if (child == 0) become_rank(launch, rank, parent, words);
    started[static_cast<size_t>(rank)] = child;
  }
  int code = 0;
  for (int64_t left = ranks; left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) break;
    const std::optional<size_t> rank = rank_of(ended);
    if (!rank) continue;
    started[*rank] = 0;
    --left;
    if (WIFSIGNALED(status) && code == 0)  // what ends all of them is told of once
      fmt::print(stderr, "snug: rank {} (process {}) was ended by signal {} ({})\n", *rank, ended, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    const int its_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code == 0) code = its_code;
  }
  return code;
}

std::unique_ptr<Communicator> meet_for(const World& world, const Plan& plan) {
  std::unique_ptr<Communicator> ranks = meet(world);
  const std::vector<int64_t> all = all_ranks(*ranks, static_cast<int64_t>(hash_bytes(what_runs(plan))));
  const auto other = std::find_if(all.begin(), all.end(), [&](int64_t hash) { return hash != all.front(); });
  if (other == all.end()) return ranks;
  ranks->fail();
  throw RankLost(fmt::format("rank {} runs another program than rank 0", other - all.begin()),
                 "give all of them the same recipe, model and version of snug", world.rank == 0);
}

void QuietReporter::loaded() { listen_for_signals(); }

}  // namespace snug::cli
