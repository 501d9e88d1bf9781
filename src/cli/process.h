#pragma once
// How the process that trains or generates behaves: what it does with signals, how its threads wait.

#include <atomic>
#include <span>

namespace snug::cli {

// The signal (SIGINT, SIGTERM) that asked for an end; 0: none so far.
std::atomic<int>& stop_signal();
// From now on the first signal is remembered there and answered with `said` on stderr; a second stops at once. `said` must
// live as long as the program.
void listen_for_signals(const char* said = "");
// The same in one of several processes that `snug train` started: what that passes on is no second signal.
void listen_for_signals_as_rank(const char* said);
// From now on a signal is answered with `said` and ends the program at once, with 128 and its number.
void end_at_signals(const char* said);
// Signals end the program again.
void leave_signals();

// Lets threads that wait do so without spinning for long; may start the program once more: `snug COMMAND words…`.
void wait_briefly(const char* command, std::span<char* const> words);

}  // namespace snug::cli
