#pragma once
// How the process that trains or generates behaves: what it does with signals, how its threads wait.

#include <atomic>
#include <span>

namespace snug::cli {

// The signal (SIGINT, SIGTERM) that asked for an end; 0: none so far.
std::atomic<int>& stop_signal();
// From now on the first signal is remembered there; a second stops at once.
void listen_for_signals();
// Signals end the program again.
void leave_signals();

// Lets threads that wait do so without spinning for long; may start the program once more: `snug COMMAND words…`.
void wait_briefly(const char* command, std::span<char* const> words);

}  // namespace snug::cli
