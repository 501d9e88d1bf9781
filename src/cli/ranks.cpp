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
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/version.h"
#include "cli/process.h"
#include "comm/agree.h"
#include "comm/local/shared_memory.h"
#include "recipe/keys.h"
#include "train/run_state.h"

namespace snug::cli {

namespace {

std::array<std::atomic<pid_t>, kMostLocalRanks> started{};  // for the handler, which may touch nothing else

// What was sent to this process is passed on; a rank that was sent it too knows (cli/process.cpp). The terminal sends its
// own signals to all of them.
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

// What must be the same for all ranks: what they are asked for, and the collectives that come of it. How many cores and
// bytes each has need not.
std::string what_runs(const Plan& plan) {
  std::string text = fmt::format("{} {}", kVersion, plan.program.seq_len);
  for (const Key& key : recipe_keys())
    if (key.get && key.name != "threads" && key.name != "memory")
      text += fmt::format("\n{}: {}", key.name, key.get(plan.recipe));
  if (plan.program.mesh.pipeline > 1) return text;  // stages run other ops
  text += fmt::format("\n{} {}", plan.program.total_parameters(), plan.program.trainable_parameters());
  for_each_op(plan.program.root, [&](const Op& op, const Region& region) {
    if (run_by(op.kind) == RunBy::ranks)
      text += fmt::format("\n{} {} {} x {} from {}", name_of(op.kind), plan.program.tensor(op.find(Slot::x)).bytes(),
                          region.name, region.count, region.first);
  });
  return text;
}

// The rank of a process; none if it is none of them.
std::optional<size_t> rank_of(pid_t process) {
  const auto found = std::find_if(started.begin(), started.end(), [&](const auto& id) { return id.load() == process; });
  return found == started.end() ? std::nullopt : std::optional(static_cast<size_t>(found - started.begin()));
}

// The exit code of the first that failed. Those that live on when one has failed learn of it when they next meet the others;
// who computes for longer is ended.
int wait_for_ranks(int64_t ranks) {
  constexpr std::chrono::seconds kGrace(10);
  constexpr std::chrono::milliseconds kBetween(20);
  using Clock = std::chrono::steady_clock;
  int code = 0;
  bool told = false;  // a rank that ended by itself has said why
  std::string signalled;
  Clock::time_point failed;
  for (int64_t left = ranks; left > 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, code == 0 ? 0 : WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended < 0) break;
    if (ended == 0) {
      if (Clock::now() - failed > kGrace) pass_on(SIGKILL);
      std::this_thread::sleep_for(kBetween);
      continue;
    }
    const std::optional<size_t> rank = rank_of(ended);
    if (!rank) continue;
    started[*rank] = 0;
    --left;
    if (WIFSIGNALED(status) && code == 0)
      signalled = fmt::format("snug: rank {} (process {}) was ended by signal {} ({})\n", *rank, ended, WTERMSIG(status),
                              strsignal(WTERMSIG(status)));
    told = told || (WIFEXITED(status) && WEXITSTATUS(status) == 1);
    if (code != 0) continue;
    code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    failed = Clock::now();
  }
  if (!told) fmt::print(stderr, "{}", signalled);
  return code;
}

}  // namespace

int launch_ranks(int64_t ranks, std::span<char* const> words) {
  if (ranks > kMostLocalRanks)
    throw Error(fmt::format("{} processes on one machine", ranks), "num_processes",
                fmt::format("give at most {}", kMostLocalRanks));
  const OwnLaunch launch(ranks);
  pass_signals_on();
  const pid_t parent = getpid();
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child < 0) throw Error(fmt::format("process {} cannot be started: {}", rank, std::strerror(errno)), "num_processes");
    if (child == 0) become_rank(launch, rank, parent, words);
    started[static_cast<size_t>(rank)] = child;
  }
  return wait_for_ranks(ranks);
}

int64_t least_of_ranks(const RankRings& ranks, int64_t value) {
  const std::vector<int64_t> all = all_ranks(ranks.all(), value);
  return *std::min_element(all.begin(), all.end());
}

void require_same(const RankRings& ranks, const Plan& plan) {
  const std::vector<int64_t> all = all_ranks(ranks.all(), static_cast<int64_t>(hash_bytes(what_runs(plan))));
  const auto other = std::find_if(all.begin(), all.end(), [&](int64_t hash) { return hash != all.front(); });
  if (other == all.end()) return;
  throw RankLost(fmt::format("rank {} runs another program than rank 0", other - all.begin()),
                 "give all of them the same recipe, model and version of snug", ranks.rank() == 0);
}

void QuietReporter::loaded() { listen_for_signals_as_rank(""); }

}  // namespace snug::cli
