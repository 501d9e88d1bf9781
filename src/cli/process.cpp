#include "cli/process.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace snug::cli {

namespace {

std::atomic<int> last_signal{0};
std::atomic<const char*> signal_answer{""};
std::atomic<int> passed_on{0}, sent{0};  // signals to a rank, by the process that started it and by others

void say_answer() {
  const char* const text = signal_answer.load();
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

// Who started a rank passes on what it was sent, and whoever signals a group or a service has sent it to the rank as well,
// in whatever order they come: the second of one sender stops at once.
extern "C" void remember_signal_once(int signal, siginfo_t* info, void* /*context*/) {
  if ((info->si_pid == getppid() ? passed_on : sent)++ > 0) _exit(128 + signal);
  if (last_signal.exchange(signal) != 0) return;
  const int before = errno;
  say_answer();
  errno = before;
}

extern "C" void remember_signal(int signal) {
  last_signal.store(signal);
  const int before = errno;
  say_answer();
  errno = before;
}

extern "C" void end_at_once(int signal) {
  say_answer();
  _exit(128 + signal);
}

void handle_signals(void (*handler)(int), const char* said) {
  signal_answer.store(said);
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | SA_RESETHAND;  // a second signal stops at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

std::atomic<int>& stop_signal() { return last_signal; }

void listen_for_signals(const char* said) { handle_signals(remember_signal, said); }

void listen_for_signals_as_rank(const char* said) {
  signal_answer.store(said);
  struct sigaction action {};
  action.sa_sigaction = remember_signal_once;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void end_at_signals(const char* said) { handle_signals(end_at_once, said); }

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
