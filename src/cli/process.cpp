#include "cli/process.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace snug::cli {

namespace {

std::atomic<int> last_signal{0};

extern "C" void remember_signal(int signal) { last_signal.store(signal); }

}  // namespace

std::atomic<int>& stop_signal() { return last_signal; }

void listen_for_signals() {
  struct sigaction action {};
  action.sa_handler = remember_signal;
  action.sa_flags = SA_RESTART | SA_RESETHAND;  // a second signal stops at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void leave_signals() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

// Threads of libgomp spin while they wait, for ever by default. On cores that others use too, a spinning thread keeps the
// one it waits for from running (steps 10 to 30 times slower were measured). libgomp reads its settings when it is loaded,
// so the program starts itself once more with a short spin; whoever has set them keeps their choice.
void wait_briefly(const char* command, std::span<char* const> words) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "20000", 1);  // some 50 microseconds
  std::string name = "snug", first = command;
  std::vector<char*> arguments = {name.data(), first.data()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.push_back(nullptr);
  execv("/proc/self/exe", arguments.data());  // returns only if it failed; then the threads spin
}

}  // namespace snug::cli
